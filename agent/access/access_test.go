package access

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func with(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLocalMayEverything(t *testing.T) {
	l := Local()
	who, err := l.Identify(t.Context(), nil)
	if err != nil || who.Name == "" {
		t.Fatal(who, err)
	}
	for _, verb := range Verbs() {
		if may, err := l.May(t.Context(), who, Right{verb, Transitions}); !may || err != nil {
			t.Errorf("%s: %v, %v", verb, may, err)
		}
	}
}

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.yaml")
	write(t, path, "users:\n- {name: ada, tokenSHA256: "+hashOf("one")+", verbs: [get, approve]}\n"+
		"- {name: bob, tokenSHA256: "+hashOf("two")+", verbs: [get], expires: 2026-06-01T00:00:00Z}\n")
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	users, err := Users(path, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	ada, err := users.Identify(t.Context(), with("one"))
	if err != nil || ada.Name != "ada" {
		t.Fatal(ada, err)
	}
	for verb, want := range map[Verb]bool{Get: true, Approve: true, Plan: false, Cancel: false} {
		if may, err := users.May(t.Context(), ada, Right{verb, Policies}); may != want || err != nil {
			t.Errorf("%s: %v, %v", verb, may, err)
		}
	}
	for _, header := range []http.Header{{}, with("three"), with(""), with(hashOf("one")), {"Authorization": {"Basic one"}}} {
		if who, err := users.Identify(t.Context(), header); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v is %v, %v", header, who, err)
		}
	}
	if bob, err := users.Identify(t.Context(), with("two")); err != nil || bob.Name != "bob" {
		t.Error(bob, err)
	}
	now = now.AddDate(0, 1, 0)
	if _, err := users.Identify(t.Context(), with("two")); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired token: %v", err)
	}
	// A file that changed counts at once, and one that cannot be read lets nobody in.
	write(t, path, "users:\n- {name: eve, tokenSHA256: "+hashOf("four")+", verbs: []}\n")
	if _, err := users.Identify(t.Context(), with("one")); !errors.Is(err, ErrUnknown) {
		t.Errorf("a user taken out: %v", err)
	}
	write(t, path, "users: {")
	if _, err := users.Identify(t.Context(), with("four")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a broken file: %v", err)
	}
}

func TestTokenFilesThatAreRefused(t *testing.T) {
	hashed := "tokenSHA256: " + hashOf("a") + ", "
	for text, complaint := range map[string]string{
		"users: []": "there are none",
		"users: [{tokenSHA256: " + hashOf("a") + "}]":                        "no name",
		"users: [{name: a, tokenSHA256: secret}]":                            "no SHA-256",
		"users: [{name: a, tokenSHA256: " + hashOf("a") + ", verbs: [fly]}]": `"fly"`,
		"users: [{name: a, verbs: [get]}]":                                   "neither",
		"users: [{name: a, accessKey: {id: A, secret: short}}]":              "16 bytes",
		"users: [{name: a, accessKey: {id: A, secret: " + secret + "}}, {name: b, accessKey: {id: A, secret: " + secret + "}}]": "same id",
		"users: [{name: a, " + hashed + "objects: [{prefix: x}]}]":                                                              "may is empty",
		"users: [{name: a, " + hashed + "objects: [{may: [get]}]}]":                                                             `"get"`,
		"users: [{name: a, login: b}]":                                                                                          "no provider is declared",
		"providers: [{issuer: 'http://x', audience: a}]\nusers: []":                                                             "https://login.example.org",
		"providers: [{issuer: 'https://x'}]\nusers: []":                                                                         "audience",
		"providers: [{issuer: 'https://x', audience: a, ca: /none}]\nusers: []":                                                 "authorities",
		"providers: [{issuer: 'https://x', audience: a}]\nusers: [{name: a, login: b}, {name: c, login: b}]":                    `"b"`,
		"users: [{name: a, token: b}]":                                                                                          "token",
		"users: [{name: a, tokenSHA256: " + hashOf("a") + "}, {name: b, tokenSHA256: " + hashOf("a") + ", verbs: []}]":          "same token",
	} {
		path := filepath.Join(t.TempDir(), "users.yaml")
		write(t, path, text)
		if _, err := Users(path, nil); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: %v; want %q", text, err, complaint)
		}
	}
	if _, err := Users(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("a file that is not there was accepted")
	}
}

const secret = "0f8c1b6e2a4d4f0b"

func withKey(id, secret string) http.Header {
	return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))}}
}

// An access key lets a program do what its grants say with objects, and nothing else.
func TestAccessKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.yaml")
	write(t, path, `users:
- name: gallery
  accessKey: {id: G, secret: `+secret+`}
  objects:
  - {may: [read, list], prefix: photos/}
  - {may: [write], prefix: photos/new/, class: photos}
  - {may: [admin], class: scratch}
`)
	users, err := Users(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range []http.Header{withKey("G", "wrong"), withKey("", secret), withKey("H", secret), with(secret), withKey("G", "")} {
		if who, err := users.Identify(t.Context(), header); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v is %v, %v", header, who, err)
		}
	}
	who, err := users.Identify(t.Context(), withKey("G", secret))
	if err != nil || who.Name != "gallery" {
		t.Fatal(who, err)
	}
	keys := users.(Keys)
	if signer, known, err := keys.Key(t.Context(), "G"); err != nil || signer.Name != "gallery" || known != secret {
		t.Error(signer, err)
	}
	if _, _, err := keys.Key(t.Context(), "H"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if in := (Scope{grants: []Grant{{Prefix: "photos/new/"}}}); !in.Meets("photos/") || !in.Meets("photos/new/a") || in.Meets("music/") {
		t.Error(in)
	}
	for _, verb := range Verbs() {
		if may, err := users.May(t.Context(), who, Right{Verb: verb, Resource: Backends}); may || err != nil {
			t.Errorf("%s on the cluster: %v, %v", verb, may, err)
		}
	}
	for _, test := range []struct {
		verb       Verb
		key, class string
		want       bool
	}{
		{Read, "photos/a", "default", true}, {Read, "photo", "default", false}, {Read, "", "scratch", true},
		{Write, "photos/a", "photos", false}, {Write, "photos/new/a", "photos", true}, {Write, "photos/new/a", "default", false},
		{Delete, "photos/new/a", "photos", false}, {Delete, "x", "scratch", true}, {List, "photos/", "", true},
	} {
		if got := who.Scope(test.verb).Has(test.key, test.class); got != test.want {
			t.Errorf("%s %q of %s: %v", test.verb, test.key, test.class, got)
		}
	}
	for _, test := range []struct {
		verb        Verb
		key         string
		every, some bool
	}{
		{Read, "photos/a", true, true}, {Write, "photos/new/a", false, true}, {Delete, "a", false, true}, {Read, "", false, true},
	} {
		if every, some := who.Scope(test.verb).HasKey(test.key); every != test.every || some != test.some {
			t.Errorf("%s %q: %v, %v", test.verb, test.key, every, some)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	write(t, path, "users: [{name: a, accessKey: {id: G, secret: "+secret+"}}]")
	_, err = users.Identify(t.Context(), withKey("G", secret))
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("secrets that others may read: %v", err)
	}
}

// A file of secrets is one's own alone, or root's that one reads by its group.
func TestWhoseSecretsAreTaken(t *testing.T) {
	for _, c := range []struct {
		mode       os.FileMode
		owner, own int
		want       bool
	}{
		{0o600, 5, 5, true}, {0o400, 5, 5, true}, {0o640, 5, 5, false}, {0o604, 5, 5, false},
		{0o440, 0, 5, true}, {0o640, 0, 5, true}, {0o444, 0, 5, false}, {0o660, 0, 5, false}, {0o644, 0, 5, false},
		{0o640, 6, 5, false}, {0o640, 6, 0, false}, {0o640, 0, 0, false}, {0o600, 6, 0, true},
	} {
		if have := isSecret(c.mode, c.owner, c.own); have != c.want {
			t.Errorf("%o of %d, read by %d: %t", c.mode, c.owner, c.own, have)
		}
	}
}

package access

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
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
	users, err := Tokens(path, func() time.Time { return now })
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
	for text, complaint := range map[string]string{
		"users: []": "there are none",
		"users: [{tokenSHA256: " + hashOf("a") + "}]":                                                                  "no name",
		"users: [{name: a, tokenSHA256: secret}]":                                                                      "no SHA-256",
		"users: [{name: a, tokenSHA256: " + hashOf("a") + ", verbs: [fly]}]":                                           `"fly"`,
		"users: [{name: a, token: b}]":                                                                                 "token",
		"users: [{name: a, tokenSHA256: " + hashOf("a") + "}, {name: b, tokenSHA256: " + hashOf("a") + ", verbs: []}]": "same token",
	} {
		path := filepath.Join(t.TempDir(), "users.yaml")
		write(t, path, text)
		if _, err := Tokens(path, nil); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: %v; want %q", text, err, complaint)
		}
	}
	if _, err := Tokens(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("a file that is not there was accepted")
	}
}

// reviewer plays the API server: one token, and rights as verb on resource.
type reviewer struct {
	rights map[string]bool
	broken atomic.Bool
	asked  atomic.Int64
}

func (v *reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.asked.Add(1)
	if v.broken.Load() {
		http.Error(w, "down", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	var answer any
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			panic(http.ErrAbortHandler)
		}
		if review.Spec.Token == "good" {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "ada", Groups: []string{"dev"}}}
		}
		answer = review
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			panic(http.ErrAbortHandler)
		}
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = review.Spec.User == "ada" && review.Spec.Groups[0] == "dev" && a.Group == "restripe.io" && v.rights[a.Verb+" "+a.Resource]
		answer = review
	default:
		panic(fmt.Sprintf("no invariant: asked for %s", r.URL.Path))
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func TestCluster(t *testing.T) {
	v := &reviewer{rights: map[string]bool{"list redundancypolicies": true, "approve transitions": true, "create transitions": true}}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	c, err := Cluster(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range []http.Header{{}, with("bad")} {
		if who, err := c.Identify(t.Context(), header); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v is %v, %v", header, who, err)
		}
	}
	ada, err := c.Identify(t.Context(), with("good"))
	if err != nil || ada.Name != "ada" {
		t.Fatal(ada, err)
	}
	for right, want := range map[Right]bool{
		{Get, Policies}: true, {Plan, Policies}: true, {Apply, Policies}: false, // kubectl may list, not patch
		{Approve, Transitions}: true, {Pause, Transitions}: false, // approve by its own name
		{Rollback, Transitions}: true, {Rollback, Policies}: false,
	} {
		if may, err := c.May(t.Context(), ada, right); may != want || err != nil {
			t.Errorf("%v: %v, %v", right, may, err)
		}
	}
	// Answers are kept for a while, and then asked for again.
	asked := v.asked.Load()
	v.broken.Store(true)
	if may, err := c.May(t.Context(), ada, Right{Approve, Transitions}); !may || err != nil || v.asked.Load() != asked {
		t.Errorf("asked again at once: %v, %v", may, err)
	}
	now = now.Add(answerLife)
	if _, err := c.May(t.Context(), ada, Right{Approve, Transitions}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a cluster that is down: %v", err)
	}
	if _, err := c.Identify(t.Context(), with("good")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a cluster that is down: %v", err)
	}
}

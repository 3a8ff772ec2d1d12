package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"
)

// File is a file of users.
type File struct {
	Providers []Provider `json:"providers,omitempty"`
	Users     []FileUser `json:"users"`
}

// FileUser is one person or program. One with a token is known by its hash; the token itself is nowhere in the file. A program with
// an access key is known by both halves of it, of which the file has the secret as it is, for requests that are signed with it.
type FileUser struct {
	Name        string     `json:"name"`
	TokenSHA256 string     `json:"tokenSHA256,omitempty"` // in hexadecimal digits
	AccessKey   *AccessKey `json:"accessKey,omitempty"`
	Login       string     `json:"login,omitempty"`   // what a provider calls one person
	Group       string     `json:"group,omitempty"`   // what a provider calls several, each of whom has what this says
	Verbs       []Verb     `json:"verbs,omitempty"`   // on the cluster
	Objects     []Grant    `json:"objects,omitempty"` // at gateways
	Expires     *time.Time `json:"expires,omitempty"`
}

// AccessKey is what a program shows.
type AccessKey struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
}

// minSecret is how long the secret of an access key is at least, in bytes.
const minSecret = 16

// users is the Authority of a file. A file that changed is read again.
type users struct {
	path string
	now  func() time.Time

	mutex sync.Mutex // of what follows
	seen  fileState
	known known
	err   error // why the file, as it is now, cannot be used: then nobody is known
}

// known is what a file says.
type known struct {
	tokens    map[string]*FileUser // by hash
	keys      map[string]*FileUser // by id
	logins    map[string]*FileUser
	groups    map[string]*FileUser
	providers map[string]*provider // by issuer
}

// fileState tells whether a file changed.
type fileState struct {
	size     int64
	modified time.Time
}

// Users returns the Authority that knows the people and programs of a file:
//
//	users:
//	  - name: ada
//	    tokenSHA256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b
//	    verbs: [get, plan, approve]
//	    expires: 2027-01-01T00:00:00Z   # optional
//	  - name: gallery
//	    accessKey: {id: GALLERY, secret: 0f8c1b6e2a4d4f0b9e57c3a1d2b4e6f8}
//	    objects:
//	      - {may: [read, write, delete, list], prefix: photos/, class: photos}   # prefix and class are optional
//
// People of an identity provider (OpenID Connect) send its ID token as a bearer token, and are known where it is declared:
//
//	providers:
//	  - {issuer: https://login.example.org, audience: restripe, login: email}   # claims: login (default sub), groups (default groups)
//	users:
//	  - {name: ada, login: ada@example.org, verbs: [get, plan, approve]}
//	  - {name: operators, group: storage, verbs: [get, plan, apply, pause]}
//
// Who is in several of these may do what any of them may. Tokens are sent as Authorization: Bearer TOKEN, access keys as the user
// and password of HTTP Basic. Both are to be random, of 32 bytes or so: hashes are not salted. A file with secrets must be its owner's
// alone; root's may be read by its group, for a process that is not root. now is nil for the real clock.
func Users(path string, now func() time.Time) (Authority, error) {
	if now == nil {
		now = time.Now
	}
	u := &users{path: path, now: now}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.refresh(); u.err != nil {
		return nil, u.err
	}
	return u, nil
}

func (u *users) Method() Method { return ByToken }

// errNobody is told to those who show nothing.
var errNobody = fmt.Errorf("%w: send a token, as in Authorization: Bearer TOKEN, or an access key, as in curl -u ID:SECRET", ErrUnknown)

func (u *users) Identify(ctx context.Context, header http.Header) (*User, error) {
	u.mutex.Lock()
	u.refresh()
	now, err := u.known, u.err
	u.mutex.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if token := Bearer(header); strings.Count(token, ".") == 2 && len(now.providers) > 0 { // as those of providers look
		return now.signedIn(ctx, token)
	}
	who, by, err := now.find(header)
	if err != nil {
		return nil, err
	}
	return u.asUser(who, by)
}

// asUser returns somebody who has shown what they are known by, unless that has expired.
func (u *users) asUser(who *FileUser, by Method) (*User, error) {
	if who.Expires != nil && !u.now().Before(*who.Expires) {
		return nil, fmt.Errorf("%w: what %s shows expired at %s", ErrUnknown, who.Name, who.Expires.Format(time.RFC3339))
	}
	return NewUser(who.Name, by, who.Verbs, who.Objects...), nil
}

// Key implements Keys.
func (u *users) Key(_ context.Context, id string) (*User, string, error) {
	u.mutex.Lock()
	u.refresh()
	now, err := u.known, u.err
	u.mutex.Unlock()
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	of, is := now.keys[id]
	if !is {
		return nil, "", fmt.Errorf("%w: the access key is not among those of the server", ErrUnknown)
	}
	who, err := u.asUser(of, ByAccessKey)
	if err != nil {
		return nil, "", err
	}
	return who, of.AccessKey.Secret, nil
}

// find returns whom a header is of, and by what.
func (k *known) find(header http.Header) (who *FileUser, by Method, err error) {
	if token := Bearer(header); token != "" {
		sum := sha256.Sum256([]byte(token))
		if who, is := k.tokens[hex.EncodeToString(sum[:])]; is {
			return who, ByToken, nil
		}
		return nil, "", fmt.Errorf("%w: the token is not among those of the server", ErrUnknown)
	}
	id, secret, basic := (&http.Request{Header: header}).BasicAuth()
	if !basic {
		return nil, "", errNobody
	}
	who, is := k.keys[id]
	if !is || subtle.ConstantTimeCompare([]byte(who.AccessKey.Secret), []byte(secret)) != 1 {
		return nil, "", fmt.Errorf("%w: the access key is not among those of the server, or its secret is another", ErrUnknown)
	}
	return who, ByAccessKey, nil
}

func (u *users) May(_ context.Context, who *User, right Right) (bool, error) {
	return who.Has(right), nil
}

// refresh reads the file if it changed. The mutex is held.
func (u *users) refresh() {
	info, err := os.Stat(u.path)
	if err != nil {
		u.known, u.seen, u.err = known{}, fileState{}, fmt.Errorf("reading the users: %w", err)
		return
	}
	if now := (fileState{info.Size(), info.ModTime()}); now != u.seen {
		before := u.known.providers
		u.known, u.err = readUsers(u.path, info, before, u.now)
		u.seen = now
	}
}

// readUsers reads a file. Providers that are in it as before keep what they know.
func readUsers(path string, info os.FileInfo, before map[string]*provider, clock func() time.Time) (known, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return known{}, fmt.Errorf("reading the users: %w", err)
	}
	var file File
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return known{}, fmt.Errorf("reading the users in %s: %w", path, err)
	}
	now := known{
		tokens: map[string]*FileUser{}, keys: map[string]*FileUser{}, logins: map[string]*FileUser{}, groups: map[string]*FileUser{},
		providers: map[string]*provider{},
	}
	for _, declared := range file.Providers {
		if err := now.addProvider(declared, before[declared.Issuer], clock); err != nil {
			return known{}, fmt.Errorf("reading the users in %s: %w", path, err)
		}
	}
	for i := range file.Users {
		if err := now.add(&file.Users[i]); err != nil {
			return known{}, fmt.Errorf("reading the users in %s: user %d: %w", path, i+1, err)
		}
	}
	switch {
	case len(file.Users) == 0:
		return known{}, fmt.Errorf("reading the users in %s: there are none; declare some under users", path)
	case len(now.keys) > 0 && !isSecret(info.Mode(), ownerOf(info), os.Geteuid()):
		return known{}, fmt.Errorf("reading the users in %s: it has secrets, and others may read it: chmod 600 it", path)
	}
	return now, nil
}

// isSecret reports whether a file is its owner's alone or, where it is root's and this process another user's, that of a group which may
// read it: so a container is given the Secrets of Kubernetes.
func isSecret(mode os.FileMode, owner, own int) bool {
	if owner == 0 && own != 0 {
		return mode.Perm()&0o037 == 0
	}
	return mode.Perm()&0o077 == 0
}

// ownerOf returns the user whose a file is; this one where that is not known.
func ownerOf(info os.FileInfo) int {
	if stat, is := info.Sys().(*syscall.Stat_t); is {
		return int(stat.Uid)
	}
	return os.Geteuid()
}

func (k *known) add(u *FileUser) error {
	if u.Name == "" {
		return errors.New("it has no name")
	}
	if err := checkVerbs(u.Verbs, Verbs()); err != nil {
		return fmt.Errorf("verbs of %s: %w", u.Name, err)
	}
	for _, g := range u.Objects {
		if len(g.May) == 0 {
			return fmt.Errorf("objects of %s: may is empty; there are %v", u.Name, ObjectVerbs())
		}
		if err := checkVerbs(g.May, ObjectVerbs()); err != nil {
			return fmt.Errorf("objects of %s: %w", u.Name, err)
		}
	}
	if u.TokenSHA256 == "" && u.AccessKey == nil && u.Login == "" && u.Group == "" {
		return fmt.Errorf("%s has neither tokenSHA256 nor accessKey, login or group, so that nobody could be known as it", u.Name)
	}
	if (u.Login != "" || u.Group != "") && len(k.providers) == 0 {
		return fmt.Errorf("%s has a login or a group, and no provider is declared that could tell of them", u.Name)
	}
	for _, entry := range []struct {
		name string
		of   map[string]*FileUser
	}{{u.Login, k.logins}, {u.Group, k.groups}} {
		if other, taken := entry.of[entry.name]; taken {
			return fmt.Errorf("%s and %s are both %q; put them into one", other.Name, u.Name, entry.name)
		}
		if entry.name != "" {
			entry.of[entry.name] = u
		}
	}
	if u.TokenSHA256 != "" {
		hash, err := hex.DecodeString(u.TokenSHA256)
		if err != nil || len(hash) != sha256.Size {
			return fmt.Errorf("tokenSHA256 of %s is no SHA-256: want 64 hexadecimal digits, as `printf %%s TOKEN | sha256sum` prints them",
				u.Name)
		}
		key := hex.EncodeToString(hash)
		if other, taken := k.tokens[key]; taken {
			return fmt.Errorf("%s and %s have the same token; give each one of their own", other.Name, u.Name)
		}
		k.tokens[key] = u
	}
	if key := u.AccessKey; key != nil {
		if key.ID == "" || len(key.Secret) < minSecret {
			return fmt.Errorf("the access key of %s: want an id, and a secret of %d bytes or more", u.Name, minSecret)
		}
		if other, taken := k.keys[key.ID]; taken {
			return fmt.Errorf("%s and %s have access keys with the same id; give each one of their own", other.Name, u.Name)
		}
		k.keys[key.ID] = u
	}
	return nil
}

func checkVerbs(verbs, all []Verb) error {
	for _, verb := range verbs {
		if !slices.Contains(all, verb) {
			return fmt.Errorf("the verb %q is none; there are %v", verb, all)
		}
	}
	return nil
}

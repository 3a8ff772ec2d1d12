package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

// tokenFile is a file of users.
type tokenFile struct {
	Users []tokenUser `json:"users"`
}

// tokenUser is one user. The token itself is nowhere in the file.
type tokenUser struct {
	Name        string     `json:"name"`
	TokenSHA256 string     `json:"tokenSHA256"` // in hexadecimal digits
	Verbs       []Verb     `json:"verbs"`
	Expires     *time.Time `json:"expires,omitempty"`
}

// tokens is the Authority of a file. A file that changed is read again.
type tokens struct {
	path string
	now  func() time.Time

	mutex sync.Mutex // of what follows
	seen  fileState
	users map[string]tokenUser // by hash
	err   error                // why the file, as it is now, cannot be used: then nobody is known
}

// fileState tells whether a file changed.
type fileState struct {
	size     int64
	modified time.Time
}

// Tokens returns the Authority that knows the users of a file:
//
//	users:
//	  - name: ada
//	    tokenSHA256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b
//	    verbs: [get, plan, approve]
//	    expires: 2027-01-01T00:00:00Z   # optional
//
// Tokens are to be random, of 32 bytes or so: their hashes are not salted. now is nil for the real clock.
func Tokens(path string, now func() time.Time) (Authority, error) {
	if now == nil {
		now = time.Now
	}
	t := &tokens{path: path, now: now}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.refresh(); t.err != nil {
		return nil, t.err
	}
	return t, nil
}

func (t *tokens) Method() Method { return ByToken }

func (t *tokens) Identify(_ context.Context, header http.Header) (*User, error) {
	token := bearer(header)
	if token == "" {
		return nil, fmt.Errorf("%w: send a token, as in Authorization: Bearer TOKEN", ErrUnknown)
	}
	sum := sha256.Sum256([]byte(token))
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.refresh(); t.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, t.err)
	}
	known, is := t.users[hex.EncodeToString(sum[:])]
	switch {
	case !is:
		return nil, fmt.Errorf("%w: the token is not among those of the server", ErrUnknown)
	case known.Expires != nil && !t.now().Before(*known.Expires):
		return nil, fmt.Errorf("%w: the token of %s expired at %s", ErrUnknown, known.Name, known.Expires.Format(time.RFC3339))
	}
	return &User{Name: known.Name, verbs: known.Verbs}, nil
}

func (t *tokens) May(_ context.Context, who *User, right Right) (bool, error) {
	return slices.Contains(who.verbs, right.Verb), nil
}

// refresh reads the file if it changed. The mutex is held.
func (t *tokens) refresh() {
	info, err := os.Stat(t.path)
	if err != nil {
		t.users, t.seen, t.err = nil, fileState{}, fmt.Errorf("reading the users: %w", err)
		return
	}
	if now := (fileState{info.Size(), info.ModTime()}); now != t.seen {
		t.users, t.err = readTokens(t.path)
		t.seen = now
	}
}

func readTokens(path string) (map[string]tokenUser, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the users: %w", err)
	}
	var file tokenFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("reading the users in %s: %w", path, err)
	}
	users := map[string]tokenUser{}
	for i, u := range file.Users {
		hash, err := hex.DecodeString(u.TokenSHA256)
		switch {
		case u.Name == "":
			return nil, fmt.Errorf("reading the users in %s: user %d has no name", path, i+1)
		case err != nil || len(hash) != sha256.Size:
			return nil, fmt.Errorf("reading the users in %s: tokenSHA256 of %s is no SHA-256: want 64 hexadecimal digits, as `printf %%s TOKEN | sha256sum` prints them", path, u.Name)
		}
		for _, verb := range u.Verbs {
			if !slices.Contains(Verbs(), verb) {
				return nil, fmt.Errorf("reading the users in %s: %s has the verb %q; there are %v", path, u.Name, verb, Verbs())
			}
		}
		key := hex.EncodeToString(hash)
		if other, taken := users[key]; taken {
			return nil, fmt.Errorf("reading the users in %s: %s and %s have the same token; give each one of their own", path, other.Name, u.Name)
		}
		users[key] = u
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("reading the users in %s: there are none; declare some under users", path)
	}
	return users, nil
}

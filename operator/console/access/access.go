package access

import (
	"context"
	"errors"
	"net/http"
	"os/user"
	"slices"
	"strings"
)

// Verb is something a user may do.
type Verb string

// The verbs.
const (
	Get      Verb = "get"      // see
	Plan     Verb = "plan"     // have something worked out that changes nothing
	Apply    Verb = "apply"    // declare, delete, move objects, and change nodes
	Approve  Verb = "approve"  // let a transition start that waits for a person
	Pause    Verb = "pause"    // pause, resume, throttle, hold
	Cancel   Verb = "cancel"   // end a transition
	Rollback Verb = "rollback" // take a transition back
)

// Verbs lists every verb.
func Verbs() []Verb { return []Verb{Get, Plan, Apply, Approve, Pause, Cancel, Rollback} }

// Resource is a kind of declared objects, by the name its rights have in Kubernetes.
type Resource string

// The resources.
const (
	Policies    Resource = "redundancypolicies"
	Transitions Resource = "transitions"
	Backends    Resource = "storagebackends"
	Schemes     Resource = "redundancyschemes"
)

// Right is a verb on a resource. Local users and tokens have verbs on everything; Kubernetes looks at both.
type Right struct {
	Verb     Verb
	Resource Resource
}

// Method is how users are known.
type Method string

// The methods.
const (
	ByLocal   Method = "local"
	ByToken   Method = "token"
	ByCluster Method = "cluster"
)

// User is who calls.
type User struct {
	Name   string
	Groups []string
	UID    string
	Extra  map[string][]string
	verbs  []Verb // of a local user or a token
}

// Sentinels; use errors.Is.
var (
	// ErrUnknown says that nobody knows the caller.
	ErrUnknown = errors.New("who calls is not known")
	// ErrUnavailable says that it cannot be told now who calls or what they may do.
	ErrUnavailable = errors.New("it cannot be told who calls")
)

// Authority knows people and their rights. Implementations are safe for concurrent use.
type Authority interface {
	// Method says how.
	Method() Method
	// Identify returns who sent a request with this header; ErrUnknown or ErrUnavailable where it cannot.
	Identify(ctx context.Context, header http.Header) (*User, error)
	// May reports whether a user that Identify returned has a right; ErrUnavailable where it cannot be told.
	May(ctx context.Context, who *User, right Right) (bool, error)
}

// local is the Authority of a machine that only its user reaches.
type local struct{ user User }

// Local returns the Authority that takes everybody for the user who runs the program. It is for addresses that other
// machines cannot reach.
func Local() Authority {
	name := "local"
	if me, err := user.Current(); err == nil && me.Username != "" {
		name = me.Username
	}
	return &local{User{Name: name, verbs: Verbs()}}
}

func (l *local) Method() Method { return ByLocal }

func (l *local) Identify(context.Context, http.Header) (*User, error) { return &l.user, nil }

func (l *local) May(_ context.Context, who *User, right Right) (bool, error) {
	return slices.Contains(who.verbs, right.Verb), nil
}

// bearer returns the token of a header; empty: there is none.
func bearer(header http.Header) string {
	scheme, token, _ := strings.Cut(header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

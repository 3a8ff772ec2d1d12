package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/user"
	"slices"
	"strings"
)

// Verb is something a user may do.
type Verb string

// The verbs on what is declared and on the cluster.
const (
	Get      Verb = "get"      // see
	Plan     Verb = "plan"     // have something worked out that changes nothing
	Apply    Verb = "apply"    // declare, delete, move objects, and change nodes
	Approve  Verb = "approve"  // let a transition start that waits for a person
	Pause    Verb = "pause"    // pause, resume, throttle, hold
	Cancel   Verb = "cancel"   // end a transition
	Rollback Verb = "rollback" // take a transition back
	Audit    Verb = "audit"    // see the audit log; Get lets it too
	Metrics  Verb = "metrics"  // see the figures for Prometheus; Get lets it too
)

// Verbs lists every verb on the cluster.
func Verbs() []Verb {
	return []Verb{Get, Plan, Apply, Approve, Pause, Cancel, Rollback, Audit, Metrics}
}

// Changes reports whether a verb on the cluster is for changing it.
func (v Verb) Changes() bool {
	switch v {
	case Get, Plan, Audit, Metrics:
		return false
	}
	return true
}

// The verbs on objects.
const (
	Read   Verb = "read"   // the bytes of an object, and what is known of it
	Write  Verb = "write"  // store, overwrite and change
	Delete Verb = "delete" // take out
	List   Verb = "list"   // names, sizes and times
	Admin  Verb = "admin"  // all of these
)

// ObjectVerbs lists every verb on objects.
func ObjectVerbs() []Verb { return []Verb{Read, Write, Delete, List, Admin} }

// Resource is a kind of declared objects, by the name its rights have in Kubernetes, or Objects.
type Resource string

// The resources.
const (
	Policies    Resource = "redundancypolicies"
	Transitions Resource = "transitions"
	Backends    Resource = "storagebackends" // the nodes of a cluster too
	Schemes     Resource = "redundancyschemes"
	Objects     Resource = "objects" // that are stored
)

// Right is a verb on a resource. Local users and those of a file have verbs on everything but objects; Kubernetes looks at both.
type Right struct {
	Verb     Verb
	Resource Resource
}

// Method is how users are known.
type Method string

// The methods. An Authority of ByToken knows users by access keys and identity providers too.
const (
	ByLocal       Method = "local"
	ByToken       Method = "token"
	ByCluster     Method = "cluster"
	ByAccessKey   Method = "accessKey"
	ByProvider    Method = "provider"
	ByCertificate Method = "certificate"
	ByNobody      Method = "none" // nobody asked
)

// User is who calls.
type User struct {
	Name   string
	By     Method // how it is known
	Groups []string
	UID    string
	Extra  map[string][]string

	verbs   []Verb  // on the cluster: of a local user or one of a file
	objects []Grant // on objects
}

// Has reports whether a local user or one of a file has a right on the cluster.
func (u *User) Has(right Right) bool {
	return slices.Contains(u.verbs, right.Verb) || (right.Verb == Audit || right.Verb == Metrics) && slices.Contains(u.verbs, Get)
}

// Grant lets somebody do something with objects.
type Grant struct {
	May    []Verb `json:"may"`
	Prefix string `json:"prefix,omitempty"` // of keys; empty: any
	Class  string `json:"class,omitempty"`  // of objects; empty: any
}

// Scope is for which objects somebody may do something.
type Scope struct{ grants []Grant }

// Scope returns for which objects the user may do something.
func (u *User) Scope(verb Verb) Scope {
	var s Scope
	for _, g := range u.objects {
		if slices.Contains(g.May, verb) || slices.Contains(g.May, Admin) {
			s.grants = append(s.grants, g)
		}
	}
	return s
}

// Has reports whether an object of a class is in the scope.
func (s Scope) Has(key, class string) bool {
	return slices.ContainsFunc(s.grants, func(g Grant) bool {
		return strings.HasPrefix(key, g.Prefix) && (g.Class == "" || g.Class == class)
	})
}

// HasKey reports whether objects of a key are in the scope: of every class, or of some. Of those that begin with the key that is
// true as well.
func (s Scope) HasKey(key string) (every, some bool) {
	for _, g := range s.grants {
		if strings.HasPrefix(key, g.Prefix) {
			some, every = true, every || g.Class == ""
		}
	}
	return every, some
}

// Meets reports whether there may be objects in the scope whose keys begin with a prefix.
func (s Scope) Meets(prefix string) bool {
	return slices.ContainsFunc(s.grants, func(g Grant) bool {
		return strings.HasPrefix(prefix, g.Prefix) || strings.HasPrefix(g.Prefix, prefix)
	})
}

// Lacks says which right the user does not have that a verb on the object of a key needs; "" where it has. Where that depends on classes,
// it is asked for those that the object is of, and would be of.
func (u *User) Lacks(verb Verb, key string, classes func() ([]string, error)) (right string, err error) {
	in := u.Scope(verb)
	every, some := in.HasKey(key)
	switch {
	case every:
		return "", nil
	case !some:
		return fmt.Sprintf("%s on objects is missing for key %.80q", verb, key), nil
	}
	of, err := classes()
	if err != nil {
		return "", err
	}
	for _, class := range of {
		if !in.Has(key, class) {
			return fmt.Sprintf("%s on objects of class %s is missing", verb, class), nil
		}
	}
	return "", nil
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

// Keys is an Authority that knows access keys, so that it can be told whether a request was signed with one.
type Keys interface {
	// Key returns whose an access key is, and its secret; ErrUnknown or ErrUnavailable where it cannot.
	Key(ctx context.Context, id string) (who *User, secret string, err error)
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
	return &local{*NewUser(name, ByLocal, Verbs(), Grant{May: []Verb{Admin}})}
}

// NewUser returns a user who is known in some way, and has verbs on the cluster and grants on objects.
func NewUser(name string, by Method, verbs []Verb, objects ...Grant) *User {
	return &User{Name: name, By: by, verbs: verbs, objects: objects}
}

func (l *local) Method() Method { return ByLocal }

func (l *local) Identify(context.Context, http.Header) (*User, error) { return &l.user, nil }

func (l *local) May(_ context.Context, who *User, right Right) (bool, error) {
	return who.Has(right), nil
}

// Bearer returns the token of a header; empty: there is none.
func Bearer(header http.Header) string {
	scheme, token, _ := strings.Cut(header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

package values

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Session is one client's way to the values. It is safe for concurrent use.
type Session struct {
	*Store
	who     identity
	isAhead bool // of others: see Ahead
}

// Anybody returns the session of a client that has not said who it is. Where users are asked for it may do nothing before it has:
// NeedsLogin.
func (s *Store) Anybody() *Session {
	if s.parts.Users == nil {
		return &Session{Store: s, who: &known{access.NewUser("anybody", access.ByNobody, nil, access.Grant{May: []access.Verb{access.Admin}})}}
	}
	return &Session{Store: s}
}

// NeedsLogin reports whether the client has to say who it is before it may do anything.
func (s *Session) NeedsLogin() bool { return s.who == nil }

// User is the name of whom the session is of; empty: it is not known yet.
func (s *Session) User(ctx context.Context) (string, error) {
	user, err := s.user(ctx)
	if err != nil {
		return "", err
	}
	return user.Name, nil
}

// Login returns the session of the user that a token, or an access key's id and secret, are of. For a token the name is empty.
// ErrUnauthenticated where nobody is.
func (s *Store) Login(ctx context.Context, name, secret string) (*Session, error) {
	if s.parts.Users == nil {
		return s.Anybody(), nil
	}
	request := http.Request{Header: http.Header{}}
	if name == "" {
		request.Header.Set("Authorization", "Bearer "+secret)
	} else {
		request.SetBasicAuth(name, secret)
	}
	session := &Session{Store: s, who: &shown{users: s.parts.Users, header: request.Header}}
	if _, err := session.user(ctx); err != nil {
		return nil, err
	}
	return session, nil
}

// Certified returns the session of the user that a client's certificate names, nil where it has shown none.
func (s *Store) Certified(state *tls.ConnectionState) (*Session, error) {
	user, err := s.parts.Certified(state)
	if user == nil || err != nil {
		return nil, err
	}
	return &Session{Store: s, who: &known{user}}, nil
}

// identity tells whom a session is of.
type identity interface {
	user(ctx context.Context) (*access.User, error)
}

// known is a user who stays the same.
type known struct{ is *access.User }

func (k *known) user(context.Context) (*access.User, error) { return k.is, nil }

// believed is for how long what a client showed is believed before it is looked at again: it may have been taken back.
const believed = 10 * time.Second

// shown is a user by what the client showed.
type shown struct {
	users  access.Authority
	header http.Header

	mutex sync.Mutex
	is    *access.User
	seen  time.Time
}

func (s *shown) user(ctx context.Context) (*access.User, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.is != nil && time.Since(s.seen) < believed {
		return s.is, nil
	}
	user, err := s.users.Identify(ctx, s.header)
	if errors.Is(err, access.ErrUnknown) {
		return nil, api.Refuse(api.ErrUnauthenticated, "%w", err)
	}
	if err != nil {
		return nil, api.Refuse(api.ErrUnavailable, "%w", err)
	}
	s.is, s.seen = user, time.Now()
	return user, nil
}

func (s *Session) user(ctx context.Context) (*access.User, error) {
	if s.who == nil {
		return nil, api.Refuse(api.ErrUnauthenticated, "who calls is not known: log in with a token, or with an access key's id and secret")
	}
	return s.who.user(ctx)
}

// scope returns for which objects the user may do something.
func (s *Session) scope(ctx context.Context, verb access.Verb) (*access.User, access.Scope, error) {
	user, err := s.user(ctx)
	if err != nil {
		return nil, access.Scope{}, err
	}
	return user, user.Scope(verb), nil
}

func refused(user *access.User, format string, args ...any) error {
	return api.Refuse(api.ErrForbidden, "%s may not do this: %s; who looks after this gateway can grant it",
		user.Name, fmt.Sprintf(format, args...))
}

// may refuses a verb on a key, where the object there is, or would be, of one of these classes.
func (s *Session) may(ctx context.Context, verb access.Verb, key string, classes func() ([]string, error)) error {
	user, in, err := s.scope(ctx, verb)
	if err != nil {
		return err
	}
	every, some := in.HasKey(key)
	switch {
	case every:
		return nil
	case !some:
		return refused(user, "%s on objects is missing for key %.80q", verb, key)
	}
	of, err := classes()
	if err != nil {
		return err
	}
	for _, class := range of {
		if !in.Has(key, class) {
			return refused(user, "%s on objects of class %s is missing", verb, class)
		}
	}
	return nil
}

// mayWrite refuses a put that its user has no right to, of the object that is there as of that which would be.
func (s *Session) mayWrite(ctx context.Context, key, class string) error {
	return s.may(ctx, access.Write, key, func() ([]string, error) {
		into, err := s.parts.Classes.For(key, class)
		if err != nil {
			return nil, err
		}
		there, err := s.classOf(ctx, key)
		return append(there, into.Name), err
	})
}

// mayDelete refuses the removal of an object that its user has no right to.
func (s *Session) mayDelete(ctx context.Context, key string) error {
	return s.may(ctx, access.Delete, key, func() ([]string, error) { return s.classOf(ctx, key) })
}

// classOf is the class of the object of a key, none where there is no object.
func (s *Session) classOf(ctx context.Context, key string) ([]string, error) {
	there, err := s.parts.Objects.Find(ctx, key)
	if err != nil || there == nil {
		return nil, classed(err)
	}
	return []string{there.Class}, nil
}

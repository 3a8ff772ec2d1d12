package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/pki"
)

// open is the right that everybody has: to learn whether the process works.
var open access.Right

// rights is the one table of what every request needs. A request that is not in it is refused.
var rights = map[api.Route]access.Right{
	api.RouteHealthy: open,
	api.RouteReady:   open,

	api.RoutePutObject:    on(access.Write, access.Objects),
	api.RouteGetObject:    on(access.Read, access.Objects),
	api.RoutePatchObject:  on(access.Write, access.Objects),
	api.RouteDeleteObject: on(access.Delete, access.Objects),
	api.RouteStatObject:   on(access.List, access.Objects),
	api.RouteListObjects:  on(access.List, access.Objects),

	api.RouteStatus:            on(access.Get, access.Backends),
	api.RouteLoad:              on(access.Get, access.Backends),
	api.RouteHeat:              on(access.Get, access.Policies),
	api.RouteDoctor:            on(access.Get, access.Backends),
	api.RouteMetrics:           on(access.Metrics, access.Backends),
	api.RouteListAudit:         on(access.Audit, access.Policies),
	api.RouteVerifyAudit:       on(access.Audit, access.Policies),
	api.RouteGetLineage:        on(access.Get, access.Backends),
	api.RouteGetRepair:         on(access.Get, access.Backends),
	api.RouteListClasses:       on(access.Get, access.Policies),
	api.RouteListNodes:         on(access.Get, access.Backends),
	api.RouteGetNode:           on(access.Get, access.Backends),
	api.RouteGetBalance:        on(access.Get, access.Backends),
	api.RoutePlanBalance:       on(access.Get, access.Backends),
	api.RouteGetScrub:          on(access.Get, access.Backends),
	api.RouteListScrubFindings: on(access.Get, access.Backends),
	api.RouteGetCompaction:     on(access.Get, access.Backends),
	api.RouteListTransitions:   on(access.Get, access.Transitions),
	api.RouteGetTransition:     on(access.Get, access.Transitions),

	api.RouteEstimate: on(access.Plan, access.Transitions),

	api.RoutePutClass:        on(access.Apply, access.Policies),
	api.RouteDeleteClass:     on(access.Apply, access.Policies),
	api.RouteStartTransition: on(access.Apply, access.Transitions),
	api.RouteMoveObject:      on(access.Apply, access.Backends),
	api.RouteSweep:           on(access.Apply, access.Backends),
	api.RouteStartRepair:     on(access.Apply, access.Backends),
	api.RouteStartScrub:      on(access.Apply, access.Backends),
	api.RouteStartCompaction: on(access.Apply, access.Backends),
	api.RouteClaimCatalog:    on(access.Apply, access.Backends),
	api.RouteAcceptCatalog:   on(access.Apply, access.Backends),
	api.RouteCopyCatalog:     on(access.Apply, access.Backends), // with the key of fingerprints, and the names of all objects
	api.RouteAsideCatalog:    on(access.Apply, access.Backends),
	api.RouteUpgradeCatalog:  on(access.Apply, access.Backends),
	api.RouteAddNode:         on(access.Apply, access.Backends),
	api.RouteStartBalance:    on(access.Apply, access.Backends),
	api.RouteDrainNode:       on(access.Apply, access.Backends),
	api.RouteUndrainNode:     on(access.Apply, access.Backends),
	api.RouteDownNode:        on(access.Apply, access.Backends),
	api.RouteUpNode:          on(access.Apply, access.Backends),
	api.RouteRemoveNode:      on(access.Apply, access.Backends),
	api.RouteReplaceNode:     on(access.Apply, access.Backends),
	api.RoutePlaceNode:       on(access.Apply, access.Backends),
	api.RoutePutPatience:     on(access.Apply, access.Backends),

	api.RoutePauseTransition:    on(access.Pause, access.Transitions),
	api.RouteResumeTransition:   on(access.Pause, access.Transitions),
	api.RouteThrottleTransition: on(access.Pause, access.Transitions),
	api.RoutePauseRepair:        on(access.Pause, access.Backends),
	api.RouteResumeRepair:       on(access.Pause, access.Backends),
	api.RouteDeferRepair:        on(access.Pause, access.Backends),
	api.RouteThrottleRepair:     on(access.Pause, access.Backends),
	api.RoutePauseScrub:         on(access.Pause, access.Backends),
	api.RouteResumeScrub:        on(access.Pause, access.Backends),
	api.RoutePauseBalance:       on(access.Pause, access.Backends),
	api.RouteResumeBalance:      on(access.Pause, access.Backends),
	api.RouteCancelBalance:      on(access.Pause, access.Backends), // it does no more than stop, as a pause does
	api.RoutePauseCompaction:    on(access.Pause, access.Backends),
	api.RouteResumeCompaction:   on(access.Pause, access.Backends),

	api.RouteCancelTransition: on(access.Cancel, access.Transitions),
}

func on(verb access.Verb, what access.Resource) access.Right {
	return access.Right{Verb: verb, Resource: what}
}

// changes reports whether a right is to change the cluster.
func changes(right access.Right) bool {
	return right != open && right.Resource != access.Objects && right.Verb.Changes()
}

type userKey struct{}

// admit returns the context of a request that may be made, in which its user is. Objects are looked at once it is known which.
func (s *Server) admit(r *http.Request, route api.Route) (context.Context, error) {
	ctx := r.Context()
	right, known := rights[route]
	if !known {
		return ctx, api.Refuse(api.ErrForbidden, "no right is laid down for %s, so that nobody may ask for it", route.Pattern())
	}
	if s.users == nil || right == open {
		return ctx, nil
	}
	user, err := s.identify(r)
	if err != nil {
		return ctx, err
	}
	ctx = context.WithValue(ctx, userKey{}, user)
	if right.Resource == access.Objects {
		return ctx, nil
	}
	may, err := s.users.May(ctx, user, right)
	if err != nil {
		return ctx, api.Refuse(api.ErrUnavailable, "%w", err)
	}
	if !may {
		return ctx, s.refused(user, "the verb %s on %s is missing", right.Verb, right.Resource)
	}
	return ctx, nil
}

func (s *Server) refused(user *access.User, format string, args ...any) error {
	return api.Refuse(api.ErrForbidden, "%s may not do this: %s; who looks after this gateway can grant it",
		user.Name, fmt.Sprintf(format, args...))
}

// identify returns who sends a request: whom its certificate names, if it has one, else whom its header names.
func (s *Server) identify(r *http.Request) (*access.User, error) {
	if user, err := Certified(s.certificates, r.TLS); user != nil || err != nil {
		return user, err
	}
	user, err := s.users.Identify(r.Context(), r.Header)
	if errors.Is(err, access.ErrUnknown) {
		return nil, api.Refuse(api.ErrUnauthenticated, "%w", err)
	}
	if err != nil {
		return nil, api.Refuse(api.ErrUnavailable, "%w", err)
	}
	return user, nil
}

// Certified returns the user that a client's certificate names; nil where it has shown none.
func Certified(certificates *pki.Source, state *tls.ConnectionState) (*access.User, error) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil, nil
	}
	peer, err := certificates.PeerOf(state)
	if err == nil {
		err = peer.Check()
	}
	if err != nil {
		return nil, api.Refuse(api.ErrUnauthenticated, "%w", err)
	}
	return userOf(peer.Identity), nil
}

// userOf returns what a part of the cluster may do at a gateway. Operator and console ask for others, whom they have asked for
// their rights.
func userOf(is pki.Identity) *access.User {
	switch is.Role {
	case pki.RoleAdmin:
		return access.NewUser(is.String(), access.ByCertificate, access.Verbs(), access.Grant{May: []access.Verb{access.Admin}})
	case pki.RoleOperator, pki.RoleConsole:
		return access.NewUser(is.String(), access.ByCertificate, access.Verbs(), access.Grant{May: []access.Verb{access.List}})
	}
	return access.NewUser(is.String(), access.ByCertificate, nil)
}

// userIn returns who sends a request that was admitted. Where nobody is asked who they are that is anybody, who may do everything.
func userIn(ctx context.Context) *access.User {
	if user, known := ctx.Value(userKey{}).(*access.User); known {
		return user
	}
	return access.NewUser("anybody", access.ByNobody, nil, access.Grant{May: []access.Verb{access.Admin}})
}

// scope returns for which objects the user of a request may do something.
func scope(ctx context.Context, verb access.Verb) (user *access.User, in access.Scope) {
	user = userIn(ctx)
	return user, user.Scope(verb)
}

// mayObject refuses a request for an object that its user has no right to. Of a put both the object that is there and the one that
// would be have to be of a class for which there is one.
func (s *Server) mayObject(r *http.Request, verb access.Verb, key string) error {
	user := userIn(r.Context())
	lacking, err := user.Lacks(verb, key, func() (of []string, err error) {
		if r.Method == http.MethodPut {
			class, err := s.classes.For(key, r.URL.Query().Get("class"))
			if err != nil {
				return nil, err
			}
			of = append(of, class.Name)
		}
		there, err := s.objects.Find(r.Context(), key)
		if there != nil {
			of = append(of, there.Class)
		}
		return of, err
	})
	if lacking != "" {
		err = s.refused(user, "%s", lacking)
	}
	return err
}

// mayList refuses a listing that its user has no right to, and returns which of its objects they may see.
func (s *Server) mayList(ctx context.Context, prefix string) (visible func(*api.Object) bool, err error) {
	user, in := scope(ctx, access.List)
	every, some := in.HasKey(prefix)
	switch {
	case every:
		return func(*api.Object) bool { return true }, nil
	case some:
		return func(o *api.Object) bool { return in.Has(o.Key, o.Class) }, nil
	}
	return nil, s.refused(user, "list on objects is missing for prefix %.80q", prefix)
}

// note logs a change of the cluster, with who made it.
func (s *Server) note(r *http.Request, route api.Route, status int) {
	if !changes(rights[route]) {
		return
	}
	s.log.Info("asked to change the cluster",
		"user", userIn(r.Context()).Name, "from", r.RemoteAddr, "what", r.Method+" "+strings.TrimPrefix(r.URL.Path, "/v1"), "status", status)
}

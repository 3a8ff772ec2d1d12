// Package review asks Kubernetes who calls a console and what they may do (TokenReview and SubjectAccessReview), so that nobody
// may do more there than with kubectl.
package review

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/restripe/restripe/agent/access"
)

// group is the API group whose rights count.
const group = "restripe.io"

// answerLife is for how long an answer of the cluster is taken for true, so that a watch costs no review for each message
// of a page that loads.
const answerLife = 10 * time.Second

// answerLimit is how many answers are kept.
const answerLimit = 4096

// nativeVerbs are the verbs of Kubernetes by which it grants the same with kubectl, and get, by which it grants all that is to be seen.
var nativeVerbs = map[access.Verb][]string{
	access.Get: {"list"}, access.Plan: {"list"}, access.Audit: {"get", "list"}, access.Metrics: {"get", "list"},
	access.Apply: {"patch"}, access.Approve: {"patch"}, access.Pause: {"patch"}, access.Cancel: {"patch"}, access.Rollback: {"create"},
}

// cluster is the Authority of a Kubernetes cluster.
type cluster struct {
	tokens authentication.TokenReviewInterface
	access authorization.SubjectAccessReviewInterface
	now    func() time.Time

	users  answers[*access.User]
	rights answers[bool]
}

// Cluster returns the Authority that asks the API server of a configuration. A right is granted to whom Kubernetes grants
// the verb itself on the resource of the group restripe.io, such as approve on transitions, or the verb by which kubectl
// does the same: list to see and plan, patch to change, create to take back. The configuration must be allowed to create
// TokenReviews and SubjectAccessReviews (the ClusterRole system:auth-delegator). now is nil for the real clock.
func Cluster(config *rest.Config, now func() time.Time) (access.Authority, error) {
	if now == nil {
		now = time.Now
	}
	who, err := authentication.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the API server for its users: %w", err)
	}
	what, err := authorization.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the API server for its rights: %w", err)
	}
	return &cluster{tokens: who.TokenReviews(), access: what.SubjectAccessReviews(), now: now}, nil
}

func (c *cluster) Method() access.Method { return access.ByCluster }

func (c *cluster) Identify(ctx context.Context, header http.Header) (*access.User, error) {
	token := access.Bearer(header)
	if token == "" {
		return nil, fmt.Errorf("%w: send a token of the cluster, as in Authorization: Bearer TOKEN; `kubectl create token NAME` makes one", access.ErrUnknown)
	}
	who, err := c.users.get(sha256.Sum256([]byte(token)), c.now(), func() (*access.User, error) {
		review, err := c.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("%w: reviewing the token: %w", access.ErrUnavailable, err)
		}
		if !review.Status.Authenticated {
			return nil, nil
		}
		u := review.Status.User
		extra := map[string][]string{}
		for key, values := range u.Extra {
			extra[key] = values
		}
		return &access.User{Name: u.Username, By: access.ByCluster, Groups: u.Groups, UID: u.UID, Extra: extra}, nil
	})
	if err == nil && who == nil {
		err = fmt.Errorf("%w: the cluster does not know the token, or it expired", access.ErrUnknown)
	}
	return who, err
}

func (c *cluster) May(ctx context.Context, who *access.User, right access.Right) (bool, error) {
	text, err := json.Marshal(who)
	if err != nil {
		return false, fmt.Errorf("%w: %w", access.ErrUnavailable, err)
	}
	key := sha256.Sum256(fmt.Appendf(text, "\n%s\n%s", right.Verb, right.Resource))
	return c.rights.get(key, c.now(), func() (bool, error) {
		for _, verb := range append([]string{string(right.Verb)}, nativeVerbs[right.Verb]...) {
			allowed, err := c.review(ctx, who, verb, right.Resource)
			if allowed || err != nil {
				return allowed, err
			}
		}
		return false, nil
	})
}

func (c *cluster) review(ctx context.Context, who *access.User, verb string, resource access.Resource) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range who.Extra {
		extra[key] = values
	}
	review, err := c.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Name, Groups: who.Groups, UID: who.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: string(resource), Verb: verb},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("%w: reviewing the rights of %s: %w", access.ErrUnavailable, who.Name, err)
	}
	return review.Status.Allowed, nil
}

// answers keeps what was asked for a while. Errors are not kept.
type answers[T any] struct {
	mutex sync.Mutex
	kept  map[[sha256.Size]byte]answer[T]
}

type answer[T any] struct {
	value T
	until time.Time
}

func (a *answers[T]) get(key [sha256.Size]byte, now time.Time, ask func() (T, error)) (T, error) {
	a.mutex.Lock()
	known, is := a.kept[key]
	a.mutex.Unlock()
	if is && now.Before(known.until) {
		return known.value, nil
	}
	value, err := ask()
	if err != nil {
		return value, err
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.kept == nil || len(a.kept) >= answerLimit {
		a.kept = map[[sha256.Size]byte]answer[T]{}
	}
	a.kept[key] = answer[T]{value, now.Add(answerLife)}
	return value, nil
}

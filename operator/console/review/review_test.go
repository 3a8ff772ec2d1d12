package review

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/restripe/restripe/agent/access"
)

func with(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

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
		if who, err := c.Identify(t.Context(), header); !errors.Is(err, access.ErrUnknown) {
			t.Errorf("%v is %v, %v", header, who, err)
		}
	}
	ada, err := c.Identify(t.Context(), with("good"))
	if err != nil || ada.Name != "ada" {
		t.Fatal(ada, err)
	}
	for right, want := range map[access.Right]bool{
		{Verb: access.Get, Resource: access.Policies}: true, {Verb: access.Plan, Resource: access.Policies}: true,
		{Verb: access.Apply, Resource: access.Policies}:      false,                                                           // kubectl may list, not patch
		{Verb: access.Approve, Resource: access.Transitions}: true, {Verb: access.Pause, Resource: access.Transitions}: false, // by its own name
		{Verb: access.Rollback, Resource: access.Transitions}: true, {Verb: access.Rollback, Resource: access.Policies}: false,
	} {
		if may, err := c.May(t.Context(), ada, right); may != want || err != nil {
			t.Errorf("%v: %v, %v", right, may, err)
		}
	}
	// Answers are kept for a while, and then asked for again.
	asked := v.asked.Load()
	v.broken.Store(true)
	approve := access.Right{Verb: access.Approve, Resource: access.Transitions}
	if may, err := c.May(t.Context(), ada, approve); !may || err != nil || v.asked.Load() != asked {
		t.Errorf("asked again at once: %v, %v", may, err)
	}
	now = now.Add(answerLife)
	if _, err := c.May(t.Context(), ada, approve); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("a cluster that is down: %v", err)
	}
	if _, err := c.Identify(t.Context(), with("good")); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("a cluster that is down: %v", err)
	}
}

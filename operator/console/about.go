package console

import (
	"context"
	"time"

	"connectrpc.com/connect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/access"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/price"
)

// WhoAmI says who calls and which verbs they have; on a cluster, on any resource.
func (s *Server) WhoAmI(ctx context.Context, _ *consolev1.WhoAmIRequest) (*consolev1.WhoAmIResponse, error) {
	user := callerOf(ctx).user
	answer := &consolev1.WhoAmIResponse{User: user.Name, By: string(s.authority.Method())}
	for _, verb := range access.Verbs() {
		for _, resource := range resourcesOf(verb) {
			may, err := s.authority.May(ctx, user, access.Right{Verb: verb, Resource: resource})
			if err != nil {
				return nil, refuse(codeOfAccess(err), "%w", err)
			}
			if may {
				answer.Verbs = append(answer.Verbs, string(verb))
				break
			}
		}
	}
	return answer, nil
}

// resourcesOf returns the resources on which calls need a verb.
func resourcesOf(verb access.Verb) (resources []access.Resource) {
	if verb == metricsRight.Verb {
		return []access.Resource{metricsRight.Resource}
	}
	seen := map[access.Resource]bool{}
	for _, r := range rules {
		if r.right.Verb == verb && !seen[r.right.Resource] {
			seen[r.right.Resource] = true
			resources = append(resources, r.right.Resource)
		}
	}
	return resources
}

// GetAbout says what serves, and with which settings.
func (s *Server) GetAbout(context.Context, *consolev1.GetAboutRequest) (*consolev1.About, error) {
	about := &consolev1.About{
		Version: s.options.Version, Started: contract.Time(s.began), ApiServer: s.options.RESTConfig.Host,
		Authentication: string(s.authority.Method()),
		Prices:         pricesView(nil),
		LookSeconds:    s.options.Intervals.Look.Seconds(), SampleSeconds: s.options.Intervals.Sample.Seconds(),
		HistorySamples: int64(s.history.Limit()), AuditDirectory: s.options.AuditDirectory, Sources: s.freshness(""),
	}
	for _, backend := range s.world.backends.all() {
		view := &consolev1.Backend{
			Name: backend.Name, Type: string(backend.Spec.Type), Gateways: backend.GatewayAddresses(), Conditions: conditionViews(backend.Status.Conditions),
			UsedBytes: backend.Status.UsedBytes, CapacityBytes: backend.Status.CapacityBytes,
		}
		if seen := s.backends.at(backend.Name); seen != nil {
			status, _, _ := seen.observer.Status.Get()
			view.Cluster = status.Cluster
		}
		about.Backends = append(about.Backends, view)
	}
	for _, scheme := range s.world.schemes.all() {
		about.Schemes = append(about.Schemes, &consolev1.Scheme{
			Name: scheme.Name, Code: scheme.Status.Code, CanLose: scheme.Status.CanLose, Overhead: scheme.Status.Overhead, Policies: scheme.Status.Policies,
		})
	}
	return about, nil
}

// sources are what the console knows all it shows from: what is declared, and what the gateways say.
type sources struct {
	world    *world
	backends *seenBackends
	now      func() time.Time
}

// freshness is that of the API server and the backends, or of one of those.
func (s *sources) freshness(backend string) []*consolev1.Source {
	sources := []*consolev1.Source{sourceView("API server", s.world.freshness())}
	for _, seen := range s.backends.all(backend) {
		sources = append(sources, sourceView("backend "+seen.name, seen.freshness()))
	}
	return sortSources(sources)
}

// backendNamed returns a backend. Its name may be left out where there is only one.
func (s *sources) backendNamed(name string) (*seenBackend, error) {
	list := s.backends.all(name)
	switch {
	case len(list) == 1:
		return list[0], nil
	case name != "":
		return nil, refuse(connect.CodeNotFound, "there is no backend %q", name)
	case len(list) == 0:
		return nil, refuse(connect.CodeFailedPrecondition, "there is no backend; declare a StorageBackend")
	}
	return nil, refuse(connect.CodeInvalidArgument, "there are several backends; say which")
}

// freshness is that of what most views show of a backend.
func (b *seenBackend) freshness() gateways.Freshness {
	_, _, status := b.observer.Status.Get()
	_, _, nodes := b.nodes.Get()
	_, _, heat := b.observer.Heat.Get()
	all := status.Worse(nodes).Worse(heat)
	if _, _, whole := b.observer.Walked.Get(); whole.Err != nil {
		return all.Worse(whole)
	}
	return all
}

func conditionViews(conditions []metav1.Condition) []*consolev1.Condition {
	var views []*consolev1.Condition
	for i := range conditions {
		c := &conditions[i]
		views = append(views, &consolev1.Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: contract.Time(c.LastTransitionTime.Time)})
	}
	return views
}

// pricesView is the price table of a policy; nil: the built-in one. Prices that make no sense are those of a policy that
// is not accepted, and nothing goes by them.
func pricesView(policy *v1alpha1.RedundancyPolicy) *consolev1.Prices {
	table := price.Default()
	if policy != nil {
		if declared, err := price.TableOf(policy.Spec.DeepCopy().Prices); err == nil {
			table = declared
		}
	}
	return &consolev1.Prices{
		StorageGibMonth: table.StorageGiBMonth, NetworkGib: table.NetworkGiB, MillionOperations: table.MillionOperations, PaybackMonths: table.PaybackMonths,
	}
}

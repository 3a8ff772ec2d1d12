package cli

import (
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/apiserver"
	"github.com/restripe/restripe/tui/cli/program"
)

const automaticPolicies = `apiVersion: restripe.io/v1alpha1
kind: StorageBackend
metadata: {name: local}
spec: {type: file, gateways: ['http://127.0.0.1:1']}
---
apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: pages}
spec:
  backendRef: local
  selector: {class: web, prefixes: [web/]}
  ladder: [rep(3), 'rs(4,2)']
  temperature: {}
---
apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: logs}
spec: {backendRef: local, selector: {prefixes: [logs/]}, ladder: [rep(3), 'rs(4,2)']}
---
apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: films}
spec:
  backendRef: local
  selector: {prefixes: [films/]}
  ladder: [rep(3), 'rs(4,2)']
  temperature: {rules: [{scheme: 'rs(4,2)', below: 1}]}
`

// TestTemperatureOfAClass reads the books that an operator keeps in the status of a policy.
func TestTemperatureOfAClass(t *testing.T) {
	t.Parallel()
	server, err := apiserver.Start(t.Context(), apiserver.Options{Directory: filepath.Join(t.TempDir(), "control")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	k := &keyboard{t, server.Kubeconfig()}
	k.refuses(program.ExitFailed, "temperature web", "no policy declares class web; there are no policies")
	k.printsOf(automaticPolicies, "apply -f -", "^policy/pages created$")
	k.refuses(program.ExitFailed, "temperature nobody", "no policy declares class nobody; there are policies of films, logs, web")
	k.refuses(program.ExitFailed, "temperature logs", "policy logs has no temperature", "`temperature: {}`")
	k.refuses(program.ExitFailed, "temperature films", "nothing is known of class films yet")
	k.refuses(program.ExitFailed, "temperature web", "nothing is known of class web yet")

	config, err := (&serverFlags{kubeconfig: server.Kubeconfig()}).restConfig()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := newAPIServer(config)
	if err != nil {
		t.Fatal(err)
	}
	tell := func(status *v1alpha1.TemperatureStatus) {
		t.Helper()
		var policy v1alpha1.RedundancyPolicy
		if err := objects.Get(t.Context(), client.ObjectKey{Name: "pages"}, &policy); err != nil {
			t.Fatal(err)
		}
		policy.Status.Temperature = status
		if err := objects.Status().Update(t.Context(), &policy); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	status := &v1alpha1.TemperatureStatus{
		Leader: "everything on rs(4,2)", Candidate: "always 1", Ladder: "rep(3),rs(4,2)", Since: metav1.NewTime(began),
		CountedSince: metav1.NewTime(began),
		Reason:       "it would have cost 1.00, where by use (half-life 3 d) cost 2.00", Paid: "2.00", Done: "2147483648",
		Candidates: []v1alpha1.TemperatureCandidate{
			{Name: "72h", Text: "by use (half-life 3 d)", Paid: "3.00", Cost: "3221225472"},
			{Name: "always 0", Text: "everything on rep(3)", Paid: "4.00", Cost: "4294967296"},
			{Name: "always 1", Text: "everything on rs(4,2)", Paid: "1.00", Cost: "1073741824"},
		},
	}
	tell(status)
	k.prints("temperature web", "^class web is led by everything on rs\\(4,2\\) since 2026-05-01 12:00 UTC:$",
		"^  it would have cost 1.00, where", "nothing is known of what others would cost yet")
	status.LookedAt = &metav1.Time{Time: began.Add(10 * 24 * time.Hour)}
	tell(status)
	k.prints("temperature web", "^paid 2.00 in the 10 d since 2026-05-01 12:00 UTC; candidates were compared last at 2026-05-11 12:00 UTC$",
		"^that is 3.04 a month more than everything on rs\\(4,2\\) would$", "^what was done +2.00 +1.00x *$",
		"^everything on rep\\(3\\) +4.00 +2.00x *$", "^everything on rs\\(4,2\\) +1.00 +0.50x +leads$")
	status.Candidate = "rules"
	tell(status)
	k.prints("temperature web", "^class web goes by the rules of its policy$", "^everything on rs\\(4,2\\) +1.00 +0.50x *$")
	k.prints("temperature web -o json", `"leader": "everything on rs\(4,2\)"`)
	k.prints("temperature web -o yaml", "^leader: everything on rs\\(4,2\\)$")
}

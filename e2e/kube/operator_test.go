package kube_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clientset "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/restripe/restripe/operator"
	"github.com/restripe/restripe/operator/config"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
)

const operatorNamespace = "restripe-system"

// TestOperatorWithItsRights: the manifests are what a cluster takes, and the operator does everything it has to with the
// rights they give, without ever being refused one.
func TestOperatorWithItsRights(t *testing.T) {
	k := &kubectl{path: program(t, "kubectl"), home: t.TempDir()}
	server := startKubernetes(t)
	k.kubeconfig = server.kubeconfig
	k.run(t, "", "apply", "--server-side", "-k", "../../operator/config/crd")
	k.run(t, "", "apply", "--server-side", "-k", "../../operator/config")
	definitions, err := config.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	server.awaitServed(t, definitions)
	account := serviceAccount(t, server, operatorNamespace, "restripe-operator")
	watched := rest.CopyConfig(account)
	refused := &refusals{}
	watched.Wrap(refused.watch)
	defer refused.check(t)

	fake := gatewaysfake.New(clock.RealClock{}, 16, 1<<30)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- operator.Run(ctx, operator.Options{
			RESTConfig: watched,
			Election:   operator.Election{LeaseNamespace: operatorNamespace},
			Dial:       func([]string) (gateways.Gateway, error) { return fake, nil },
			Intervals:  controller.Intervals{Look: 200 * time.Millisecond, Progress: 100 * time.Millisecond},
			Logger:     slog.New(slog.DiscardHandler),
		})
	}()
	k.run(t, `apiVersion: restripe.io/v1alpha1
kind: StorageBackend
metadata: {name: demo}
spec: {type: file, gateways: ["http://127.0.0.1:7480"]}
---
apiVersion: restripe.io/v1alpha1
kind: RedundancyScheme
metadata: {name: warm}
spec: {k: 4, m: 2}
---
apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: media}
spec:
  backendRef: demo
  selector: {prefixes: [media/]}
  ladder: [rep(3), warm]
  historyLimit: 1
  temperature:
    halfLife: 1s
    dwell: 1s
    rules: [{scheme: rep(3), atLeast: 1}, {scheme: warm, below: 1}]
`, "apply", "-f", "-")
	eventually(t, "putting cold groups into the class", func(context.Context) error {
		return fake.Add("media", "rep(3)", 64, 1<<20, gatewaysfake.Constant(0))
	})
	eventually(t, "moving the cold groups", func(context.Context) error {
		if counts := fake.Groups("media"); counts["rs(4,2)"] != 64 {
			return fmt.Errorf("the groups are at %v", counts)
		}
		return nil
	})
	k.run(t, "", "wait", "--for=condition=Converged", "redundancypolicy/media", "--timeout=60s")
	t.Run("rollback", func(t *testing.T) { k.rollBack(t, fake) })
	t.Run("events", func(t *testing.T) {
		if told := k.run(t, "", "get", "events.events.k8s.io", "-A", "-o", "jsonpath={.items[*].regarding.kind}"); !strings.Contains(told, "Transition") {
			t.Errorf("Events are of %q", told)
		}
	})
	t.Run("guard", func(t *testing.T) {
		eventually(t, "counting the groups", func(context.Context) error {
			if groups := k.run(t, "", "get", "sb", "demo", "-o", "jsonpath={.status.groups}"); groups != "64" {
				return fmt.Errorf("the backend says %q groups", groups)
			}
			return nil
		})
		eventually(t, "guarding the backend", func(context.Context) error { // a new policy is not in force at once
			if said := k.refused(t, "", "delete", "sb", "demo", "--dry-run=server"); !strings.Contains(said, "restripe.io/confirm-delete=demo") {
				return errors.New(said)
			}
			return nil
		})
		k.run(t, "", "annotate", "sb", "demo", "restripe.io/confirm-delete=demo")
		k.run(t, "", "delete", "sb", "demo", "--dry-run=server")
	})
	t.Run("delete", func(t *testing.T) {
		k.run(t, "", "delete", "transitions", "--all", "--timeout=60s")
		k.run(t, "", "delete", "redundancypolicies,redundancyschemes", "--all", "--timeout=60s")
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	t.Run("little", func(t *testing.T) { mayLittle(t, account) })
	t.Run("uninstall", func(t *testing.T) {
		// Namespaces are emptied by the controller manager, which does not run here: nothing else may wait for anybody.
		k.run(t, "", "delete", "-k", "../../operator/config", "--wait=false")
		eventually(t, "uninstalling", func(context.Context) error {
			left := strings.TrimSpace(k.run(t, "", "get", "-k", "../../operator/config", "--ignore-not-found", "-o", "name"))
			if left != "namespace/restripe-system" {
				return fmt.Errorf("there is still %q", left)
			}
			return nil
		})
		k.run(t, "", "get", "storagebackend", "demo") // what is declared stays
	})
}

// rollBack takes a move back, for which the operator has to change the policy.
func (k *kubectl) rollBack(t *testing.T, fake *gatewaysfake.Cluster) {
	done := k.run(t, "", "get", "transitions", "-o", "jsonpath={.items[0].metadata.name}")
	k.run(t, fmt.Sprintf(`apiVersion: restripe.io/v1alpha1
kind: Transition
metadata: {name: back}
spec: {policyRef: media, backendRef: demo, class: media, from: warm, to: rep(3), rollbackOf: %s}
`, done), "apply", "-f", "-")
	eventually(t, "taking the move back", func(context.Context) error {
		if counts := fake.Groups("media"); counts["rep(3)"] != 64 {
			return fmt.Errorf("the groups are at %v", counts)
		}
		return nil
	})
	if stopped := k.run(t, "", "get", "rp", "media", "-o", "jsonpath={.spec.stopPolicy}"); stopped != "Hold" {
		t.Errorf("the policy's stopPolicy is %s", stopped)
	}
}

// serviceAccount returns the configuration of a client with the token of a service account.
func serviceAccount(t *testing.T, server *cluster, namespace, name string) *rest.Config {
	t.Helper()
	clients, err := kubernetes.NewForConfig(server.config)
	if err != nil {
		t.Fatal(err)
	}
	var token *authenticationv1.TokenRequest
	eventually(t, "asking for a token", func(ctx context.Context) (err error) {
		token, err = clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		return err
	})
	account := rest.AnonymousClientConfig(server.config)
	account.BearerToken = token.Status.Token
	return account
}

// refusals remembers requests for which rights were missing.
type refusals struct {
	mutex sync.Mutex
	list  []string
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func (r *refusals) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && (response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized) {
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.list = append(r.list, request.Method+" "+request.URL.Path)
		}
		return response, err
	})
}

func (r *refusals) check(t *testing.T) {
	t.Helper()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, request := range r.list {
		t.Errorf("the operator has no right to %s", request)
	}
}

// mayLittle: what the operator does not need it may not do.
func mayLittle(t *testing.T, account *rest.Config) {
	mayNot(t, account, "operator", []authorizationv1.ResourceAttributes{
		{Verb: "get", Resource: "secrets", Namespace: operatorNamespace},
		{Verb: "list", Resource: "secrets"},
		{Verb: "create", Resource: "pods", Namespace: operatorNamespace},
		{Verb: "list", Resource: "nodes"},
		{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Name: "operator.restripe.io", Namespace: "default"},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Name: "other", Namespace: operatorNamespace},
		{Verb: "create", Group: "restripe.io", Resource: "storagebackends"},
		{Verb: "delete", Group: "restripe.io", Resource: "storagebackends"},
		{Verb: "delete", Group: "restripe.io", Resource: "redundancypolicies"},
		{Verb: "delete", Group: "restripe.io", Resource: "redundancyschemes"},
		{Verb: "create", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	})
	clients, err := kubernetes.NewForConfig(account)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Secrets(operatorNamespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets: %v", err)
	}
}

// mayNot asks Kubernetes whether an account may do what it must not.
func mayNot(t *testing.T, account *rest.Config, who string, list []authorizationv1.ResourceAttributes) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(account)
	if err != nil {
		t.Fatal(err)
	}
	for _, forbidden := range list {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &forbidden}}
		answer, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Status.Allowed {
			t.Errorf("the %s may %s %s/%s", who, forbidden.Verb, forbidden.Group, forbidden.Resource)
		}
	}
}

// TestOperatorBesideOtherDefinitions: where the kinds are of another release, or of none, the operator says so and what to do.
func TestOperatorBesideOtherDefinitions(t *testing.T) {
	server := startKubernetes(t)
	clients, err := clientset.NewForConfig(server.config)
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := config.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	ends := func(t *testing.T, want ...string) {
		t.Helper()
		eventually(t, "the operator says what is wrong", func(ctx context.Context) error {
			err := operator.Run(ctx, operator.Options{RESTConfig: server.config, Logger: slog.New(slog.DiscardHandler)})
			for _, text := range want {
				if err == nil || !strings.Contains(err.Error(), text) {
					return fmt.Errorf("want %q; it ends with: %w", text, err)
				}
			}
			return nil
		})
	}
	ends(t, "does not know restripe.io", "apply the definitions of this release first")

	create := func(t *testing.T, change func(*apiextensionsv1.CustomResourceDefinition), of ...*apiextensionsv1.CustomResourceDefinition) {
		t.Helper()
		for _, definition := range of {
			definition = definition.DeepCopy()
			change(definition)
			if _, err := clients.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(t *testing.T) {
		t.Helper()
		err := clients.ApiextensionsV1().CustomResourceDefinitions().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the definitions are gone", func(ctx context.Context) error {
			list, err := clients.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
			if err == nil && len(list.Items) > 0 {
				err = fmt.Errorf("%d are there", len(list.Items))
			}
			return err
		})
	}
	create(t, func(definition *apiextensionsv1.CustomResourceDefinition) {
		definition.Spec.Versions[0].Name = "v1beta1"
	}, definitions...)
	ends(t, "serves restripe.io as v1beta1, and this release knows v1alpha1 alone", "run the programs of that one")

	remove(t)
	create(t, func(*apiextensionsv1.CustomResourceDefinition) {}, definitions[0])
	ends(t, "does not know the kinds", definitions[1].Spec.Names.Kind, "apply those of this one")

	remove(t)
	create(t, func(definition *apiextensionsv1.CustomResourceDefinition) {
		if definition.Spec.Names.Kind != "RedundancyPolicy" {
			return
		}
		spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties["shine"] = apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"how": {Type: "string"}},
		}
		delete(spec.Properties, "historyLimit")
	}, definitions...)
	server.awaitServed(t, definitions)
	eventually(t, "fields that only one side has are told of", func(context.Context) error {
		warnings, err := config.Served(clients.Discovery())
		want := []string{
			"the definition of RedundancyPolicy is of a newer release than this program, which does not heed: spec.shine",
			"the definition of RedundancyPolicy is of an earlier release than this program, apply that of this one; it lacks: spec.historyLimit",
		}
		if err == nil && !slices.Equal(warnings, want) {
			err = fmt.Errorf("the warnings are %q, want %q", warnings, want)
		}
		return err
	})
}

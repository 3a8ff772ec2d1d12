package kube_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
	"github.com/restripe/restripe/operator/config"
)

// TestConsoleWithItsRights: the console does with the rights of its manifest what people ask for, each as far as
// Kubernetes grants it to them.
func TestConsoleWithItsRights(t *testing.T) {
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
	k.run(t, `apiVersion: restripe.io/v1alpha1
kind: StorageBackend
metadata: {name: demo}
spec: {type: file, gateways: ["http://127.0.0.1:1"]}
`, "apply", "-f", "-")
	// No controller fills the built-in roles in here, so what they would get is bound by itself.
	for name, role := range map[string]string{"viewer": "restripe-view", "editor": "restripe-edit", "nobody": ""} {
		k.run(t, "", "create", "serviceaccount", name, "-n", "default")
		if role != "" {
			k.run(t, "", "create", "clusterrolebinding", name, "--clusterrole="+role, "--serviceaccount=default:"+name)
		}
	}
	k.run(t, "", "create", "clusterrolebinding", "editor-sees", "--clusterrole=restripe-view", "--serviceaccount=default:editor")
	account := serviceAccount(t, server, operatorNamespace, "restripe-console")
	url := startConsole(t, account)
	as := func(name string) consolev1connect.ConsoleClient {
		return consoleClient(url, serviceAccount(t, server, "default", name).BearerToken)
	}

	viewer, editor, nobody := as("viewer"), as("editor"), as("nobody")
	eventually(t, "the console sees the backend", func(ctx context.Context) error {
		overview, err := viewer.GetOverview(ctx, &consolev1.GetOverviewRequest{})
		if err == nil && len(overview.GetSources()) == 0 {
			err = errors.New("no sources yet")
		}
		return err
	})
	me, err := viewer.WhoAmI(t.Context(), &consolev1.WhoAmIRequest{})
	sees := []string{"get", "plan", "audit", "metrics"} // who may get sees the rest too
	if err != nil || me.User != "system:serviceaccount:default:viewer" || me.By != "cluster" || !slices.Equal(me.Verbs, sees) {
		t.Errorf("the viewer is %v, %v", me, err)
	}
	policy := &consolev1.Document{Text: `apiVersion: restripe.io/v1alpha1
kind: RedundancyScheme
metadata: {name: warm}
spec: {k: 4, m: 2}
---
apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: media}
spec: {backendRef: demo, selector: {prefixes: [media/]}, ladder: [rep(3), warm]}
`, Format: consolev1.Format_FORMAT_YAML}
	for who, client := range map[string]consolev1connect.ConsoleClient{"viewer": viewer, "nobody": nobody} {
		if _, err := client.ApplyPolicy(t.Context(), &consolev1.ApplyPolicyRequest{Document: policy}); connect.CodeOf(err) != connect.CodePermissionDenied {
			t.Errorf("applied by %s: %v", who, err)
		}
	}
	if _, err := nobody.ListPolicies(t.Context(), &consolev1.ListPoliciesRequest{}); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("seen by nobody: %v", err)
	}
	if _, err := consoleClient(url, "made-up").WhoAmI(t.Context(), &consolev1.WhoAmIRequest{}); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("a token that nobody gave: %v", err)
	}

	applied, err := editor.ApplyPolicy(t.Context(), &consolev1.ApplyPolicyRequest{Document: policy})
	if err != nil || len(applied.Applied) != 2 {
		t.Fatalf("applied by the editor: %v, %v", applied, err)
	}
	k.run(t, "", "get", "rp", "media")
	if _, err := editor.HoldPolicy(t.Context(), &consolev1.HoldPolicyRequest{Name: "media", Hold: consolev1.Hold_HOLD_HOLD}); err != nil {
		t.Errorf("held: %v", err)
	}
	k.run(t, `apiVersion: restripe.io/v1alpha1
kind: Transition
metadata: {name: media-warm-1}
spec: {policyRef: media, backendRef: demo, class: media, from: rep(3), to: warm}
`, "apply", "-f", "-")
	eventually(t, "pausing", func(ctx context.Context) error {
		_, err := editor.PauseTransition(ctx, &consolev1.PauseTransitionRequest{Name: "media-warm-1"})
		return err
	})
	if paused := k.run(t, "", "get", "tr", "media-warm-1", "-o", "jsonpath={.spec.paused}"); paused != "true" {
		t.Errorf("paused is %q", paused)
	}
	if _, err := viewer.CancelTransition(t.Context(), &consolev1.CancelTransitionRequest{Name: "media-warm-1"}); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("cancelled by the viewer: %v", err)
	}
	if _, err := editor.DeletePolicy(t.Context(), &consolev1.DeletePolicyRequest{Name: "media", Confirm: "media"}); err != nil {
		t.Errorf("deleted: %v", err)
	}
	log, err := viewer.ListAudit(t.Context(), &consolev1.ListAuditRequest{})
	if err != nil || len(log.Actions) < 4 || !strings.HasSuffix(log.Actions[0].User, ":editor") {
		t.Errorf("the audit log is %v, %v", log, err)
	}
	mayNot(t, account, "console", []authorizationv1.ResourceAttributes{
		{Verb: "get", Resource: "secrets", Namespace: operatorNamespace},
		{Verb: "create", Resource: "pods", Namespace: operatorNamespace},
		{Verb: "impersonate", Resource: "users"},
		{Verb: "delete", Group: "restripe.io", Resource: "storagebackends"},
		{Verb: "delete", Group: "restripe.io", Resource: "transitions"},
		{Verb: "patch", Group: "restripe.io", Resource: "transitions", Subresource: "status"},
		{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	})
}

func consoleClient(url, token string) consolev1connect.ConsoleClient {
	return consolev1connect.NewConsoleClient(http.DefaultClient, url, connect.WithInterceptors(connect.UnaryInterceptorFunc(
		func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
				request.Header().Set("Authorization", "Bearer "+token)
				return next(ctx, request)
			}
		})))
}

// startConsole runs the console as its manifest does, with an account, and returns its address.
func startConsole(t *testing.T, account *rest.Config) string {
	t.Helper()
	folder := t.TempDir()
	binary, kubeconfig := built(t, "github.com/restripe/restripe"), filepath.Join(folder, "kubeconfig")
	writeKubeconfig(t, kubeconfig, account)
	command := exec.Command(binary, "console", "--cluster-users", "--listen", "127.0.0.1:0")
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "XDG_CACHE_HOME="+folder)
	messages := &bytes.Buffer{}
	command.Stderr = messages
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Errorf("ending the console: %v", err)
		}
		late := time.AfterFunc(20*time.Second, func() { command.Process.Kill() })
		if err := command.Wait(); err != nil || t.Failed() {
			t.Errorf("the console ended with %v and wrote\n%s", err, messages)
		}
		late.Stop()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, listens := strings.Cut(lines.Text(), " listening on "); listens {
			return fmt.Sprintf("http://%s", address)
		}
	}
	t.Fatal("the console did not say where it listens")
	return ""
}

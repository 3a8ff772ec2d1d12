package kube_test

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/apiserver"
)

// kubectl runs real kubectl commands against a server.
type kubectl struct {
	path, kubeconfig string
	home             string // for its cache of what is served
}

func (k *kubectl) command(t *testing.T, input string, arguments ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), k.path, append([]string{"--kubeconfig", k.kubeconfig, "--cache-dir", k.home}, arguments...)...)
	command.Stdin = strings.NewReader(input)
	return command
}

// run returns the standard output; the command has to succeed.
func (k *kubectl) run(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	command := k.command(t, input, arguments...)
	said := &bytes.Buffer{}
	command.Stderr = said
	output, err := command.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, said)
	}
	return string(output)
}

// refused returns what is said when the command fails, as it has to.
func (k *kubectl) refused(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	output, err := k.command(t, input, arguments...).CombinedOutput()
	if err == nil {
		t.Fatalf("kubectl %s works:\n%s", strings.Join(arguments, " "), output)
	}
	return string(output)
}

const declared = `apiVersion: restripe.io/v1alpha1
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
  ladder: [rep(3), warm, "rs(12,2)"]
---
apiVersion: restripe.io/v1alpha1
kind: Transition
metadata: {name: media-rs12-2-7}
spec: {policyRef: media, backendRef: demo, class: media, from: warm, to: "rs(12,2)"}
`

func TestKubectlOnTheEmbeddedServer(t *testing.T) {
	path := program(t, "kubectl")
	server, err := apiserver.Start(t.Context(), apiserver.Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	useKubectl(t, &kubectl{path: path, kubeconfig: server.Kubeconfig(), home: t.TempDir()})
}

func TestKubectlOnKubernetes(t *testing.T) {
	path := program(t, "kubectl")
	kubernetes := startKubernetes(t)
	kubernetes.install(t)
	useKubectl(t, &kubectl{path: path, kubeconfig: kubernetes.kubeconfig, home: t.TempDir()})
}

// useKubectl does what people do.
func useKubectl(t *testing.T, k *kubectl) {
	if said := k.run(t, declared, "apply", "-f", "-"); strings.Count(said, "created") != 4 {
		t.Errorf("applied first:\n%s", said)
	}
	if said := k.run(t, declared, "apply", "-f", "-"); strings.Count(said, "unchanged") != 4 {
		t.Errorf("applied again:\n%s", said)
	}
	changed := strings.Replace(declared, `ladder: [rep(3), warm, "rs(12,2)"]`, "ladder: [rep(3), warm]", 1)
	if said := k.run(t, changed, "apply", "--server-side", "--force-conflicts", "-f", "-"); strings.Count(said, "serverside-applied") != 4 {
		t.Errorf("applied by the server:\n%s", said)
	}
	if said := k.refused(t, strings.Replace(declared, "k: 4", "k: 5", 1), "apply", "-f", "-"); !strings.Contains(said, "a scheme cannot change; declare one with another name") {
		t.Errorf("a changed scheme:\n%s", said)
	}
	if said := k.refused(t, strings.Replace(declared, "ladder:", "ladders:", 1), "apply", "-f", "-"); !strings.Contains(said, `unknown field "spec.ladders"`) {
		t.Errorf("a field nobody knows:\n%s", said)
	}
	t.Run("get", func(t *testing.T) { k.show(t) })
	t.Run("wait", func(t *testing.T) { k.await(t) })
	if said := k.run(t, "", "explain", "redundancypolicy.spec.temperature.dwell"); !strings.Contains(said, "how long a group stays") {
		t.Errorf("explained:\n%s", said)
	}
	k.run(t, "", "patch", "transition", "media-rs12-2-7", "--type=merge", "-p", `{"spec":{"paused":true}}`)
	if paused := k.run(t, "", "get", "tr", "media-rs12-2-7", "-o", "jsonpath={.spec.paused}"); paused != "true" {
		t.Errorf("paused is %q", paused)
	}
	k.run(t, "", "delete", "transitions,redundancypolicies,redundancyschemes,storagebackends", "--all")
	if left := k.run(t, "", "get", "restripe", "-o", "name"); left != "" {
		t.Errorf("left over:\n%s", left)
	}
}

// show sets states as the operator does and looks at the tables.
func (k *kubectl) show(t *testing.T) {
	k.setStatus(t, "redundancypolicies", "media", map[string]any{
		"class": "media", "activeTransitions": int64(2),
		"summary":    map[string]any{"ladder": "rep(3) > rs(4,2) > rs(12,2)", "stored": "1.2 TiB, 1.31x"},
		"conditions": []any{condition("False", "312 of 4,096 groups are still under rs(4,2)")},
	})
	k.setStatus(t, "transitions", "media-rs12-2-7", map[string]any{
		"from": "rs(4,2)", "to": "rs(12,2)",
		"summary": map[string]any{"state": "Running", "done": "74 %", "eta": "6m (5-9)", "sent": "0 B"},
	})
	for _, test := range []struct{ kinds, want string }{
		{"redundancypolicies,transitions", `
NAME                                 STORED           MOVING   CONVERGED
redundancypolicy.restripe.io/media   1.2 TiB, 1.31x   2        False

NAME                                    STATE     DONE   ETA        SENT
transition.restripe.io/media-rs12-2-7   Running   74 %   6m (5-9)   0 B
`},
		{"rp", `
NAME    STORED           MOVING   CONVERGED
media   1.2 TiB, 1.31x   2        False
`},
		{"storagebackend", `
NAME   UP    USED   CAN-LOSE   READY   AGE
demo                                   now
`},
	} {
		shown := k.run(t, "", "get", test.kinds)
		for line := range strings.Lines(shown) {
			if length := utf8.RuneCountInString(strings.TrimRight(line, "\n")); length > 80 {
				t.Errorf("%d characters wide:\n%s", length, line)
			}
		}
		shown = regexp.MustCompile(`[0-9]+s\n`).ReplaceAllString(shown, "now\n")
		shown = regexp.MustCompile(` +\n`).ReplaceAllString(shown, "\n")
		if shown != strings.TrimPrefix(test.want, "\n") {
			t.Errorf("kubectl get %s:\n%s\nnot%s", test.kinds, shown, test.want)
		}
	}
}

// await: kubectl returns when the condition comes true, and says so when it does not.
func (k *kubectl) await(t *testing.T) {
	if said := k.refused(t, "", "wait", "--for=condition=Converged", "redundancypolicy/media", "--timeout=1s"); !strings.Contains(said, "timed out") {
		t.Errorf("waiting for nothing:\n%s", said)
	}
	waiting := k.command(t, "", "wait", "--for=condition=Converged", "redundancypolicy/media", "--timeout=60s")
	output := &bytes.Buffer{}
	waiting.Stdout, waiting.Stderr = output, output
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	// Whether it looks before or after, it has to see it.
	<-time.After(300 * time.Millisecond)
	k.setStatus(t, "redundancypolicies", "media", map[string]any{"conditions": []any{condition("True", "everything is under rs(12,2)")}})
	if err := waiting.Wait(); err != nil || !strings.Contains(output.String(), "condition met") {
		t.Errorf("waiting: %v\n%s", err, output)
	}
}

func condition(status, message string) map[string]any {
	return map[string]any{
		"type": v1alpha1.ConditionConverged, "status": status, "reason": "Tested", "message": message,
		"lastTransitionTime": "2026-01-02T03:04:05Z",
	}
}

func (k *kubectl) setStatus(t *testing.T, resource, name string, status map[string]any) {
	t.Helper()
	objects := dynamic.NewForConfigOrDie(k.config(t)).Resource(v1alpha1.GroupVersion.WithResource(resource))
	object, err := objects.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedMap(object.Object, status, "status"); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.UpdateStatus(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (k *kubectl) config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", k.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

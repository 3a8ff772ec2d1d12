package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/apiserver"
	"github.com/restripe/restripe/tui/cli/program"
)

// keyboard types commands that speak of declared objects to one API server.
type keyboard struct {
	t          *testing.T
	kubeconfig string
}

// typed types a command and returns its exit code and what it printed.
func (k *keyboard) typed(in, line string) (code int, out, messages string) {
	k.t.Helper()
	var printed, said bytes.Buffer
	code = execute(k.t.Context(), append(shellWords(line), "--kubeconfig", k.kubeconfig), strings.NewReader(in), &printed, &said)
	return code, printed.String(), said.String()
}

// prints fails the test unless a command ends well and its output has all the patterns.
func (k *keyboard) prints(line string, patterns ...string) string {
	k.t.Helper()
	return k.printsOf("", line, patterns...)
}

// printsOf is prints for a command that reads standard input.
func (k *keyboard) printsOf(in, line string, patterns ...string) string {
	k.t.Helper()
	code, out, messages := k.typed(in, line)
	if code != program.ExitDone {
		k.t.Fatalf("restripe %s: exit code %d\n%s%s", line, code, out, messages)
	}
	for _, pattern := range patterns {
		if !regexp.MustCompile("(?m)" + pattern).MatchString(out + messages) {
			k.t.Errorf("restripe %s: no %q in\n%s%s", line, pattern, out, messages)
		}
	}
	return out
}

// refuses fails the test unless a command ends with the code and says all of the words.
func (k *keyboard) refuses(code int, line string, words ...string) {
	k.t.Helper()
	have, out, messages := k.typed("", line)
	if have != code {
		k.t.Errorf("restripe %s: exit code %d, want %d\n%s%s", line, have, code, out, messages)
	}
	for _, word := range words {
		if !strings.Contains(out+messages, word) {
			k.t.Errorf("restripe %s: no %q in\n%s%s", line, word, out, messages)
		}
	}
}

const declaredObjects = `apiVersion: restripe.io/v1alpha1
kind: Transition
metadata: {name: media-1}
spec: {policyRef: media, backendRef: local, class: media, from: rep(3), to: 'rs(4,2)', reason: cools, needsApproval: true}
---
apiVersion: restripe.io/v1alpha1
kind: Transition
metadata: {name: media-2}
spec: {policyRef: media, backendRef: local, class: media, from: 'rs(4,2)', to: wide, reason: cools}
---
apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: media}
spec:
  backendRef: local
  selector: {prefixes: [media/]}
  ladder: [rep(3), 'rs(4,2)', wide]
---
apiVersion: restripe.io/v1alpha1
kind: RedundancyScheme
metadata: {name: wide}
spec: {k: 12, m: 2}
---
apiVersion: restripe.io/v1alpha1
kind: StorageBackend
metadata: {name: local}
spec: {type: file, gateways: ['http://127.0.0.1:1']}
`

// TestDeclaredObjectsOnAServer declares objects on an API server that no operator looks at, and steers them: what the
// commands write is there until somebody acts on it.
func TestDeclaredObjectsOnAServer(t *testing.T) {
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
	for kind, empty := range map[string]string{
		"policies": "apply -f FILE", "transitions": "Policies make them",
		"sb": "`restripe up` declares its own", "rs": "such as rs(4,2) directly",
	} {
		if out := k.prints("get "+kind, regexp.QuoteMeta(empty)); out != "" {
			t.Errorf("get %s prints %q", kind, out)
		}
	}
	if out := k.prints("get policies -o json"); !strings.Contains(out, `"items": []`) {
		t.Errorf("no policies are %s", out)
	}

	// What applying would do is shown by fields, kept nowhere, and done in the order of who refers to whom.
	folder := t.TempDir()
	file := filepath.Join(folder, "all.yaml")
	plant(t, folder, map[string]string{"all.yaml": declaredObjects})
	k.refuses(diffDifferent, "diff -f "+file,
		"scheme/wide would be created:", "  + spec.k: 12", "transition/media-1 would be created:")
	k.refuses(diffDifferent, "diff -f "+file+" -o json",
		`"object": "policy/media"`, `"change": "create"`, `"path": "spec.ladder[2]"`, `"after": "wide"`)
	k.prints("get schemes", "There are no schemes")
	out := k.prints("apply -f " + file)
	want := "backend/local created\nscheme/wide created\npolicy/media created\ntransition/media-1 created\ntransition/media-2 created\n"
	if out != want {
		t.Errorf("applying says\n%s", out)
	}
	k.printsOf(declaredObjects, "apply -f -", "^policy/media unchanged$", "^transition/media-2 unchanged$")
	if out := k.prints("diff -f " + file + " -o json"); out != "[]\n" {
		t.Errorf("no differences are %s", out)
	}
	changed := strings.Replace(declaredObjects, "ladder: [rep(3), 'rs(4,2)', wide]", "ladder: [rep(3), wide]\n  historyLimit: 3", 1)
	plant(t, folder, map[string]string{"changed.yaml": changed})
	k.refuses(diffDifferent, "diff -f "+filepath.Join(folder, "changed.yaml"),
		"policy/media would change:", "  ~ spec.ladder[1]: rs(4,2) -> wide", "  - spec.ladder[2]: wide", "spec.historyLimit: 10 -> 3")
	empty := strings.Replace(declaredObjects, "  selector: {prefixes: [media/]}", "  selector: {prefixes: [media/]}\n  prices: {}\n  packing: {}", 1)
	plant(t, folder, map[string]string{"empty.yaml": empty})
	k.refuses(diffDifferent, "diff -f "+filepath.Join(folder, "empty.yaml"),
		"policy/media would change:", "  + spec.packing: {}", "  + spec.prices: {}")
	k.refuses(diffFailed, "diff -f "+filepath.Join(folder, "none.yaml"), "none.yaml")
	k.refuses(program.ExitUsage, "diff", "say which files")

	// Every kind is listed in every form and described.
	for _, c := range []struct{ kind, name string }{
		{"policy", "media"}, {"transition", "media-1"}, {"backend", "local"}, {"scheme", "wide"},
	} {
		k.prints("get "+c.kind, "^NAME ", "^"+c.name+" ")
		k.prints("get "+c.kind+" "+c.name+" -o wide", "^"+c.name+" ")
		k.prints("get "+c.kind+" -o name", "^"+c.name+"$")
		k.prints("get "+c.kind+" "+c.name+" -o yaml", "^  name: "+c.name+"$", "^spec:$")
		var object unstructured.Unstructured
		text := k.prints("get " + c.kind + " " + c.name + " -o json")
		if err := json.Unmarshal([]byte(text), &object.Object); err != nil || object.GetName() != c.name || object.GetManagedFields() != nil {
			t.Errorf("%s %s: %v in\n%s", c.kind, c.name, err, text)
		}
		k.prints("describe "+c.kind+" "+c.name,
			"^"+c.kind+"/"+c.name+", made [0-9]+ s ago$", "The operator has not looked at it yet", "^spec:$")
		k.refuses(program.ExitFailed, "get "+c.kind+" nobody", fmt.Sprintf("there is no %s \"nobody\"; `restripe get ", c.kind))
		k.refuses(program.ExitFailed, "describe "+c.kind+" nobody", "there is no "+c.kind)
		k.refuses(program.ExitFailed, "delete "+c.kind+" nobody", "there is no "+c.kind)
	}
	if out := k.prints("get transitions -o name"); out != "media-1\nmedia-2\n" {
		t.Errorf("transitions are %q", out)
	}

	// Steering: what was done already is said, and nothing is steered twice.
	k.prints("approve media-1 transition/media-2", "^transition/media-1 approved$", "^transition/media-2 needs no approval$")
	k.prints("approve media-1", "was approved already")
	k.prints("resume media-1", "was not paused")
	k.prints("pause media-1", "paused; groups under way are finished first, `restripe resume media-1` goes on")
	k.prints("pause media-1", "was paused already")
	k.prints("get transition media-1 -o yaml", "^  paused: true$", "^  approved: true$")
	k.prints("resume media-1 policy/media", "^transition/media-1 resumed$", "^policy/media goes on$")
	if out := k.prints("get transition media-1 -o yaml"); strings.Contains(out, "paused: true") {
		t.Errorf("what was resumed is\n%s", out)
	}
	k.prints("pause policy/media", "on hold: what runs goes on, nothing new is started; `restripe resume policy/media` lifts it")
	k.prints("get policy media -o yaml", "^  stopPolicy: Hold$")
	k.refuses(program.ExitFailed, "pause policy/nobody media-2", `there is no policy "nobody"`, "transition/media-2 paused")
	k.refuses(program.ExitFailed, "cancel media-1 nobody media-2", `there is no transition "nobody"`, "transition/media-2 cancelled")
	k.prints("cancel media-1", "was cancelled already")
	k.prints("rollback media-1", "^transition/media-1-back would take groups of class media", "what it costs cannot be told", "Nothing was changed")
	k.refuses(program.ExitFailed, "get transition media-1-back", "there is no transition")
	k.prints("rollback media-1 --yes --reason 'a mistake'",
		`^transition/media-1-back created: rs\(4,2\) to rep\(3\) of class media$`, "^policy/media is put on Hold")
	k.prints("get transition media-1-back -o yaml", "^  reason: a mistake$", "^  rollbackOf: media-1$")
	k.refuses(program.ExitFailed, "rollback media-1 --yes", "was taken back already: see `restripe get transition media-1-back`")
	k.refuses(program.ExitFailed, "rollback transition/media-1-back", "takes media-1 back itself")
	k.prints("cancel media-1-back", "groups already moved stay where they are")

	// Deleting; and a server that does not answer is told from one that says no.
	k.prints("delete tr media-1 media-1-back media-2", "^transition/media-1(-back)? deleted$", "^transition/media-2 deleted$")
	k.refuses(program.ExitFailed, "delete policy media other", "policy/media deleted", `there is no policy "other"`)
	k.prints("delete backend local", "^backend/local deleted$")
	k.prints("get policies", "There are no policies")
	text, err := os.ReadFile(k.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	stranger := filepath.Join(folder, "stranger")
	plant(t, folder, map[string]string{"stranger": regexp.MustCompile(`token: .*`).ReplaceAllString(string(text), "token: wrong")})
	(&keyboard{t, stranger}).refuses(program.ExitFailed, "get policies",
		"does not know the token of the kubeconfig: take the kubeconfig it wrote")
}

// TestTheServerIsFound: by the flag, then by KUBECONFIG, then where `restripe up` leaves its own.
func TestTheServerIsFound(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", folder)
	t.Setenv("KUBECONFIG", "")
	write := func(name, host string) string {
		plant(t, folder, map[string]string{name: "apiVersion: v1\nkind: Config\ncurrent-context: c\n" +
			"clusters: [{name: c, cluster: {server: 'http://" + host + "'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
			"users: [{name: u, user: {}}]\n"})
		return filepath.Join(folder, filepath.FromSlash(name))
	}
	if _, err := (&serverFlags{}).restConfig(); !errors.Is(err, errNoServer) || !strings.Contains(err.Error(), "--kubeconfig or KUBECONFIG") {
		t.Errorf("nothing names a server: %v", err)
	}
	write("restripe/control/kubeconfig", "up")
	flagged, environment := write("flagged", "flag"), write("environment", "variable")
	for _, c := range []struct{ flag, variable, host string }{
		{"", "", "http://up"}, {"", environment, "http://variable"}, {flagged, environment, "http://flag"}, {flagged, "", "http://flag"},
		{"", filepath.Join(folder, "none") + string(filepath.ListSeparator) + environment, "http://variable"},
	} {
		t.Setenv("KUBECONFIG", c.variable)
		config, err := (&serverFlags{kubeconfig: c.flag}).restConfig()
		if err != nil || config.Host != c.host || config.UserAgent != "restripe" {
			t.Errorf("--kubeconfig %q, KUBECONFIG %q: %+v, %v", c.flag, c.variable, config, err)
		}
	}
	if _, err := (&serverFlags{kubeconfig: filepath.Join(folder, "none")}).restConfig(); err == nil || errors.Is(err, errNoServer) {
		t.Errorf("a kubeconfig that is not there: %v", err)
	}
}

// TestErrorsOfAServerSayWhatToDo: whatever the library says.
func TestErrorsOfAServerSayWhatToDo(t *testing.T) {
	server, err := newAPIServer(&rest.Config{Host: "http://here:6443"})
	if err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "redundancypolicies"}
	nothing := apierrors.NewNotFound(resource, "")
	missing := apierrors.NewNotFound(resource, "media")
	for _, c := range []struct {
		err  error
		want string
	}{
		{apierrors.NewUnauthorized("no"), "the API server at http://here:6443 does not know the token of the kubeconfig"},
		{&url.Error{Op: "Get", URL: "u", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, "no API server answers at http://here:6443"},
		{&url.Error{Op: "Get", URL: "u", Err: errors.New("x509: unknown authority")}, "asking the API server at http://here:6443: x509"},
		{nothing, "install them with `kubectl apply --server-side -k operator/config/crd`"},
		{missing, missing.Error()},
		{errors.New("something else"), "something else"},
	} {
		if have := server.explain(c.err); have == nil || !strings.Contains(have.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.err, have, c.want)
		}
	}
	if err := server.explain(nil); err != nil {
		t.Errorf("nothing wrong: %v", err)
	}
	interrupted := &url.Error{Op: "Get", URL: "u", Err: context.Canceled}
	if err := server.explain(interrupted); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// quantities is a policy as people write it: with numbers where the API's Go types write quantities.
const quantities = `{"apiVersion": "restripe.io/v1alpha1", "kind": "RedundancyPolicy", "metadata": {"name": "photos"}, "spec": {
  "backendRef": "local", "selector": {"prefixes": ["photos/"]}, "ladder": ["rep(3)", "rs(4,2)"],
  "temperature": {"rules": [{"scheme": "rep(3)", "atLeast": 100}, {"scheme": "rs(4,2)", "below": "0.50"}]},
  "budget": {"bytesPerSecond": 1048576}}}`

// TestTheSameFileByAnotherProgram: the command line and kubectl apply the same file in any order, and neither changes anything, nor
// takes anything from the other.
func TestTheSameFileByAnotherProgram(t *testing.T) {
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
	c, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	policies := c.Resource(v1alpha1.GroupVersion.WithResource("redundancypolicies"))
	byKubectl := func(manager string) {
		t.Helper()
		owner := metav1.PatchOptions{FieldManager: manager}
		if _, err := policies.Patch(t.Context(), "photos", types.ApplyPatchType, []byte(quantities), owner); err != nil {
			t.Errorf("applied by %s: %v", manager, err)
		}
	}
	byCommand := func() {
		t.Helper()
		k.printsOf(quantities, "apply -f -", "policy/photos")
		k.printsOf(quantities, "diff -f -")
	}
	generation := func() int64 {
		policy, err := policies.Get(t.Context(), "photos", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return policy.GetGeneration()
	}
	byCommand()
	byKubectl("kubectl")
	byCommand()
	if g := generation(); g != 1 {
		t.Errorf("applied by the command line first, the generation is %d", g)
	}
	if err := policies.Delete(t.Context(), "photos", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	byKubectl("kubectl")
	byCommand()
	byKubectl("kubectl")
	if g := generation(); g != 1 {
		t.Errorf("applied by kubectl first, the generation is %d", g)
	}
	if err := policies.Delete(t.Context(), "photos", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Client-side apply creates and patches; what it set is its own all the same.
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON([]byte(quantities)); err != nil {
		t.Fatal(err)
	}
	if _, err := policies.Create(t.Context(), &object, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"}); err != nil {
		t.Fatal(err)
	}
	byCommand()
	k.printsOf(k.prints("get policies -o yaml"), "apply -f -", "policy/photos")
	if g := generation(); g != 1 {
		t.Errorf("created by kubectl, the generation is %d", g)
	}
}

// TestTablesOfAServer: the columns are the server's, those of less weight are shown wide, and transitions stand in the
// order they were made.
func TestTablesOfAServer(t *testing.T) {
	row := func(name, made string, cells ...any) metav1.TableRow {
		object := fmt.Sprintf(`{"metadata": {"name": %q, "creationTimestamp": %q}}`, name, made)
		r := metav1.TableRow{Cells: cells}
		r.Object.Raw = []byte(object)
		return r
	}
	table := &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string"}, {Name: "Groups", Type: "integer"}, {Name: "Why", Type: "string", Priority: 1},
		},
		Rows: []metav1.TableRow{
			row("m-10", "2026-01-01T00:00:00Z", "m-10", float64(1500), ""), row("m-9", "2026-01-01T00:00:00Z", "m-9", nil, "cools"),
			row("z", "2025-01-01T00:00:00Z", "z", 0.5, true),
		},
	}
	l, err := tableListing(kindNamed("transition"), table)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"NAME  GROUPS  WHY", "z        0.5  true", "m-9        -  cools", "m-10    1500  -"}
	if have := tableLines(l.columns, l.rows, true); strings.Join(have, "\n") != strings.Join(want, "\n") {
		t.Errorf("the table is\n%s", strings.Join(have, "\n"))
	}
	if have := tableLines(l.columns, l.rows, false); have[0] != "NAME  GROUPS" {
		t.Errorf("the narrow table begins with %q", have[0])
	}
	if have := strings.Join(l.names, " "); have != "z m-9 m-10" {
		t.Errorf("the names are %s", have)
	}
	others, err := tableListing(kindNamed("policy"), table)
	if have := strings.Join(others.names, " "); err != nil || have != "m-10 m-9 z" {
		t.Errorf("policies are not in the server's order: %s, %v", have, err)
	}
	table.Rows[0].Object.Raw = []byte("{")
	if _, err := tableListing(kindNamed("policy"), table); err == nil {
		t.Error("a row that is no JSON was shown")
	}
}

func TestConditionsInWords(t *testing.T) {
	object := policyOf(map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Accepted", "status": "True", "reason": "Valid", "message": "it can be carried out"},
		map[string]any{"type": "Progressing", "status": "False"}, "no condition",
	}}})
	want := []string{
		"CONDITION    STATUS  REASON  MESSAGE", "Accepted     True    Valid   it can be carried out", "Progressing  False   -       -",
	}
	if have := conditionLines(object); strings.Join(have, "\n") != strings.Join(want, "\n") {
		t.Errorf("the conditions are\n%s", strings.Join(have, "\n"))
	}
}

// TestEndedTransitionsAreLeftAlone: none of the steerings changes one, and the error says how it ended.
func TestEndedTransitionsAreLeftAlone(t *testing.T) {
	now := metav1.Now()
	for name, steering := range map[string]steering{"approve": approve, "pause": pause, "resume": resume, "cancel": cancel} {
		transition := &v1alpha1.Transition{}
		transition.Spec.NeedsApproval = true
		transition.Status.CompletionTime = &now
		transition.Status.Summary.State = "Done"
		before := transition.DeepCopy()
		said, err := steering(transition)
		if !errors.Is(err, errEnded) || said != "" || !strings.Contains(err.Error(), "(done)") {
			t.Errorf("%s: %q, %v", name, said, err)
		}
		if transition.Spec != before.Spec {
			t.Errorf("%s changed it", name)
		}
	}
	waiting := &v1alpha1.Transition{}
	waiting.Spec.NeedsApproval, waiting.Spec.Cancelled = true, true
	if said, err := approve(waiting); err == nil || waiting.Spec.Approved {
		t.Errorf("a cancelled transition was approved: %q", said)
	}
}

// Package kind_test installs the chart for Helm on a real cluster of Kubernetes, with kubelets, a scheduler and a network, and lives
// through what happens to clusters: pods deleted, a machine emptied, an upgrade, a rollback, the release gone and back. `make kind`
// makes the cluster, of kind on podman, and runs it.
package kind_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/policies"
)

const (
	chart     = "../../playbooks/chart"
	namespace = "store"
	release   = "r"
	perWorker = 4 // agents
	hot, cold = "rep(3)", "rs(2,2)"
)

// story is what has happened so far.
type story struct {
	*world
	agents []string // names of nodes: a-0, ..., b-3; those of a run on the first worker, those of b on the second
	files  map[string][]byte
	photos map[string][]byte
	secret string // of the access key of the test
	fixed  string // values of gateways and catalog
}

// alone are values of a gateway whose catalog is in a file, on the first worker.
const alone = `
catalog: {storage: {size: 1Gi, class: disks}}
gateways: {users: people, service: {type: NodePort}, nodeSelector: {kubernetes.io/hostname: %s}}
`

// values are what the release is installed with, with images of a version: two failure domains, each of which is a worker.
func (s *story) values(t *testing.T, version string) string {
	t.Helper()
	return s.write(t, "values.yaml", fmt.Sprintf(`
images: {tag: %s, pullPolicy: Never}
tls: {from: secrets}
agents:
- {name: a, domain: a, replicas: %d, storage: {size: 1Gi, class: disks}, nodeSelector: {kubernetes.io/hostname: %s}}
- {name: b, domain: b, replicas: %[2]d, storage: {size: 1Gi, class: disks}, nodeSelector: {kubernetes.io/hostname: %[4]s}}
agent: {shareMachines: true}
console: {storage: {size: 1Gi, class: disks}}
`, version, perWorker, s.workers[0], s.workers[1])+s.fixed)
}

// begin finds the cluster, and says what happens when the test ends.
func begin(t *testing.T) *story {
	t.Helper()
	s := &story{world: open(t), files: map[string][]byte{}, photos: map[string][]byte{}, secret: rand.Text()}
	for _, set := range []string{"a", "b"} {
		for i := range perWorker {
			s.agents = append(s.agents, set+"-"+strconv.Itoa(i))
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.explain(t)
		}
		if s.gateway != nil {
			s.gateway.Close()
		}
	})
	return s
}

// part is what is told of a story under a name.
type part struct {
	name string
	tell func(*testing.T)
}

// tell tells parts, each of which goes on where the last one ended.
func tell(t *testing.T, parts ...part) {
	t.Helper()
	for _, part := range parts {
		if !t.Run(part.name, part.tell) {
			t.FailNow()
		}
	}
}

// TestRelease: one gateway, all that a release lives through, and that nothing of it is left at the end.
func TestRelease(t *testing.T) {
	s := begin(t)
	s.fixed = fmt.Sprintf(alone, s.workers[0])
	tell(t, part{"install", s.install}, part{"policies", s.declare}, part{"objects", s.store}, part{"cool", s.cool}, part{"heat", s.heat},
		part{"drain", s.drain}, part{"upgrade", s.upgrade}, part{"rollback", s.rollBack}, part{"uninstall", s.uninstall},
		part{"again", s.again}, part{"take away", s.takeAway})
}

// install: the volumes that machines of metal have, the Secrets that people make, the chart, and what the chart says how to wait.
func (s *story) install(t *testing.T) {
	s.prepare(t, "alone")
	s.helm(t, "install", release, chart, "-f", s.values(t, s.old), untilCurrent, atMost)
	s.ready(t)
	for component, want := range map[string]string{"agent": s.old, "gateway": s.old, "operator": s.old, "console": s.old} {
		s.checkImages(t, component, want)
	}
}

// With these Helm waits until kstatus says of every object of the release that it is as declared, the StorageBackend among them.
const (
	untilCurrent = "--wait=watcher"
	atMost       = "--timeout=5m"
)

// prepare makes what has to be there before a release: its namespace under the strictest rules for pods, volumes, Secrets.
func (s *story) prepare(t *testing.T, volumes string) {
	t.Helper()
	s.kubectl(t, "", "create", "namespace", namespace)
	s.kubectl(t, "", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	s.volumes(t, volumes)
	s.issue(t, s.agents)
	people := s.write(t, "users.yaml", fmt.Sprintf(`users:
- {name: tester, accessKey: {id: TESTER, secret: %s}, verbs: [get], objects: [{may: [admin]}]}
`, s.secret))
	s.kubectl(t, "", "-n", namespace, "create", "secret", "generic", "people", "--from-file", "users.yaml="+people)
}

// volumes makes directories of both workers volumes that claims find, as no provisioner would.
func (s *story) volumes(t *testing.T, name string) {
	t.Helper()
	text := &strings.Builder{}
	text.WriteString("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: disks}\n" +
		"provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n")
	for _, worker := range s.workers {
		for i := range perWorker + 2 { // agents, the catalog, what the console keeps
			path := "/var/lib/restripe-disks/" + name + "-" + strconv.Itoa(i)
			s.onNode(t, worker, "mkdir -p "+path)
			fmt.Fprintf(text, "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: %s-%s-%d}\nspec:\n  capacity: {storage: 2Gi}\n"+
				"  accessModes: [ReadWriteOnce]\n  persistentVolumeReclaimPolicy: Retain\n  storageClassName: disks\n  local: {path: %s}\n"+
				"  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]}}\n",
				name, worker, i, path, worker)
		}
	}
	s.kubectl(t, text.String(), "apply", "-f", "-")
}

// ready waits as NOTES.txt says, until everything of the release serves and the gateway hears every node.
func (s *story) ready(t *testing.T) {
	t.Helper()
	s.agentsReady(t)
	for _, what := range []string{"statefulset/r-gateway", "statefulset/r-console", "deployment/r-operator"} {
		s.kubectl(t, "", "-n", namespace, "rollout", "status", what, "--timeout=5m")
	}
	s.dial(t, "TESTER", s.secret)
	s.hears(t, len(s.agents))
	s.kubectl(t, "", "wait", "--for=condition=Ready", "storagebackend/restripe", "--timeout=5m")
}

func (s *story) agentsReady(t *testing.T) {
	t.Helper()
	s.kubectl(t, "", "-n", namespace, "wait", "statefulset", "--for", "jsonpath={.status.readyReplicas}=1",
		"-l", "app.kubernetes.io/component=agent", "--timeout=5m")
}

// hears waits until the gateway hears exactly so many nodes.
func (s *story) hears(t *testing.T, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("waiting for %d nodes to be up", want), func(ctx context.Context) error {
		list, err := s.gateway.Nodes(ctx)
		if err != nil {
			return err
		}
		up := 0
		for _, node := range list.Nodes {
			if node.State == "up" {
				up++
			}
		}
		if up != want {
			return fmt.Errorf("%d of %d nodes are up", up, len(list.Nodes))
		}
		return nil
	})
}

// checkImages: the pods of a component run images of a version.
func (s *story) checkImages(t *testing.T, component, version string) {
	t.Helper()
	pods := s.pods(t, component)
	if len(pods) == 0 {
		t.Errorf("there are no pods of the component %s", component)
	}
	for name, line := range pods {
		if image := strings.Fields(line)[1]; !strings.HasSuffix(image, ":"+version) {
			t.Errorf("%s runs %s, not %s", name, image, version)
		}
	}
}

// declare: a policy in YAML as it is, and one in CUE as YAML; both are taken, and in force at the gateways.
func (s *story) declare(t *testing.T) {
	s.kubectl(t, "", "apply", "-f", "testdata/files.yaml")
	objects, err := policies.Load("testdata/photos.cue")
	if err != nil {
		t.Fatal(err)
	}
	text, err := policies.Render(objects...)
	if err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, string(text), "apply", "-f", "-")
	s.kubectl(t, "", "wait", "--for=condition=Ready", "redundancypolicy/files", "redundancypolicy/photos", "--timeout=5m")
	classes, err := s.gateway.Classes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"files", "photos"} {
		if !slices.ContainsFunc(classes, func(c client.Class) bool { return c.Name == name }) {
			t.Errorf("the gateway does not know the class %s: %+v", name, classes)
		}
	}
}

// store: objects are put through the Service from outside of the cluster, and read back; a pod sees them by the name of the Service.
func (s *story) store(t *testing.T) {
	for i := range 4 {
		s.files[fmt.Sprintf("files/%d", i)] = random(t, 8<<20)
		s.photos[fmt.Sprintf("photos/%d", i)] = random(t, 256<<10)
	}
	for _, objects := range []map[string][]byte{s.files, s.photos} {
		for key, text := range objects {
			s.put(t, key, text)
		}
		s.check(t, objects)
	}
	s.kubectl(t, "", "-n", namespace, "create", "secret", "generic", "client",
		"--from-literal", "key=TESTER:"+s.secret, "--from-file", "ca.crt="+s.ca)
	s.kubectl(t, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: client, namespace: %s}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: client
    image: localhost/restripe:%s
    imagePullPolicy: Never
    command: [/usr/bin/kubectl-restripe] # the program as a plugin of kubectl
    args: [ls, files/]
    env:
    - {name: RESTRIPE_GATEWAY, value: "https://%s-gateway.%[1]s.svc:7480"}
    - {name: RESTRIPE_ACCESS_KEY, valueFrom: {secretKeyRef: {name: client, key: key}}}
    - {name: RESTRIPE_CA, value: /etc/restripe/ca.crt}
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: secret, mountPath: /etc/restripe, readOnly: true}]
  volumes: [{name: secret, secret: {secretName: client}}]
`, namespace, s.old, release), "apply", "-f", "-")
	s.kubectl(t, "", "-n", namespace, "wait", "pod/client", "--for", "jsonpath={.status.phase}=Succeeded", "--timeout=2m")
	said := s.kubectl(t, "", "-n", namespace, "logs", "client")
	for key := range s.files {
		if !strings.Contains(said, key) {
			t.Errorf("a pod sees no %s:\n%s", key, said)
		}
	}
	s.kubectl(t, "", "-n", namespace, "delete", "pod", "client", "--timeout=2m")
}

func random(t *testing.T, size int) []byte {
	t.Helper()
	text := make([]byte, size)
	if _, err := rand.Read(text); err != nil {
		t.Fatal(err)
	}
	return text
}

// cool: nobody uses the objects, so they move to the cold code; the operator that acts and an agent are deleted while they do, and the
// move goes on all the same.
func (s *story) cool(t *testing.T) {
	var transition string
	eventually(t, "waiting for files to move", func(ctx context.Context) error {
		list, err := s.try(ctx, "", "kubectl", "get", "transitions", "-o",
			`jsonpath={range .items[?(@.spec.policyRef=="files")]}{.metadata.name} {.status.summary.state}{"\n"}{end}`)
		for line := range strings.Lines(list) {
			if name, is := strings.CutSuffix(line, " Running\n"); is {
				transition = name
			}
		}
		if err == nil && transition == "" {
			err = fmt.Errorf("transitions are %q", list)
		}
		return err
	})
	lease := func(ctx context.Context) (string, error) {
		holder, err := s.try(ctx, "", "kubectl", "-n", namespace, "get", "lease", "operator.restripe.io", "-o", "jsonpath={.spec.holderIdentity}")
		name, _, _ := strings.Cut(holder, "_") // the name of the pod, and a number
		return name, err
	}
	leader, err := lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	agent := release + "-a-1-0"
	before := s.pods(t, "agent")[agent]
	s.kubectl(t, "", "-n", namespace, "delete", "pod", leader, agent, "--timeout=2m")
	if counts, err := s.schemes(t.Context(), s.files); err != nil || counts[hot] == 0 {
		t.Errorf("the move was over before anything went wrong: %v, %v", counts, err)
	}
	s.check(t, s.photos)
	eventually(t, "waiting for another operator to act", func(ctx context.Context) error {
		now, err := lease(ctx)
		if err == nil && (now == leader || now == "") {
			err = fmt.Errorf("%q acts", now)
		}
		return err
	})
	s.ready(t)
	if after := s.pods(t, "agent")[agent]; after == before || after == "" {
		t.Errorf("the agent that was deleted is %q, and was %q", after, before)
	}
	s.kubectl(t, "", "wait", "--for", "jsonpath={.status.summary.state}=Done", "transition/"+transition, "--timeout=5m")
	s.kubectl(t, "", "wait", "--for=condition=Converged", "redundancypolicy/files", "--timeout=5m")
	s.moved(t, s.files, cold)
	s.check(t, s.files)
}

// moved waits until all groups of objects are under a scheme.
func (s *story) moved(t *testing.T, objects map[string][]byte, scheme string) {
	t.Helper()
	eventually(t, "waiting for everything to be "+scheme, func(ctx context.Context) error {
		counts, err := s.schemes(ctx, objects)
		if err == nil && (len(counts) != 1 || counts[scheme] == 0) {
			err = fmt.Errorf("groups are %v", counts)
		}
		return err
	})
}

// heat: the objects of the policy in CUE have cooled as well, and come back while they are read.
func (s *story) heat(t *testing.T) {
	s.moved(t, s.photos, cold)
	eventually(t, "waiting for what is read to be "+hot, func(ctx context.Context) error {
		for key, want := range s.photos {
			for range 8 {
				text, err := s.read(ctx, key)
				if err != nil {
					return err
				}
				if !bytes.Equal(text, want) {
					return fmt.Errorf("%s is not what was stored", key)
				}
			}
		}
		counts, err := s.schemes(ctx, s.photos)
		if err == nil && counts[hot] == 0 {
			err = fmt.Errorf("groups are %v", counts)
		}
		return err
	})
}

// drain: a machine is emptied for its maintenance. The budget for agents holds that up while it allows for fewer than the machine has,
// and everything can be read all the time; when the machine is back, everything is as it was.
func (s *story) drain(t *testing.T) {
	worker := s.workers[1]
	drain := func(timeout string) (string, error) {
		return s.try(t.Context(), "", "kubectl", "drain", worker, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout", timeout)
	}
	if said, err := drain("20s"); err == nil || !strings.Contains(err.Error(), "disruption budget") {
		t.Errorf("a machine with %d agents is emptied, where one at most may be missing: %v\n%s", perWorker, err, said)
	}
	if running := s.running(t, worker); running != perWorker-1 {
		t.Errorf("%d agents run on %s, where one of %d may be missing", running, worker, perWorker)
	}
	s.check(t, s.files)
	s.helm(t, "upgrade", release, chart, "-f", s.values(t, s.old), "--set", "agent.maxUnavailable="+strconv.Itoa(perWorker))
	if said, err := drain("5m"); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if running := s.running(t, worker); running != 0 {
		t.Errorf("%d agents run on %s, which is empty", running, worker)
	}
	s.hears(t, perWorker)
	s.check(t, s.files)
	s.check(t, s.photos)
	s.files["files/meanwhile"] = random(t, 1<<20)
	s.put(t, "files/meanwhile", s.files["files/meanwhile"])
	s.kubectl(t, "", "uncordon", worker)
	s.ready(t)
	s.files["files/after"] = random(t, 1<<20)
	s.put(t, "files/after", s.files["files/after"])
	s.check(t, s.files)
}

// running counts the agents that run on a worker.
func (s *story) running(t *testing.T, worker string) int {
	t.Helper()
	list := s.kubectl(t, "", "-n", namespace, "get", "pods", "-l", "app.kubernetes.io/component=agent",
		"--field-selector", "status.phase=Running,spec.nodeName="+worker, "-o", "name")
	return len(strings.Fields(list))
}

// upgrade: gateways, operator and console take the new release by themselves, an agent when its pod is deleted, one after the other.
func (s *story) upgrade(t *testing.T) {
	s.kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(chart, "crds"))
	s.helm(t, "upgrade", release, chart, "-f", s.values(t, s.new), untilCurrent, atMost)
	s.ready(t)
	for component, want := range map[string]string{"agent": s.old, "gateway": s.new, "operator": s.new, "console": s.new} {
		s.checkImages(t, component, want)
	}
	s.check(t, s.files)
	for _, agent := range s.agents {
		s.restart(t, agent)
	}
	s.checkImages(t, "agent", s.new)
	s.check(t, s.files)
	s.check(t, s.photos)
}

// restart deletes the pods of agents and waits until they serve again.
func (s *story) restart(t *testing.T, agents ...string) {
	t.Helper()
	var pods []string
	for _, agent := range agents {
		pods = append(pods, "pod/"+release+"-"+agent+"-0")
	}
	s.kubectl(t, "", append([]string{"-n", namespace, "delete", "--timeout=2m"}, pods...)...)
	s.kubectl(t, "", append([]string{"-n", namespace, "wait", "--for=create", "--timeout=2m"}, pods...)...)
	s.kubectl(t, "", append([]string{"-n", namespace, "wait", "--for=condition=Ready", "--timeout=5m"}, pods...)...)
	s.hears(t, len(s.agents))
}

// rollBack: the release before, one failure domain after the other.
func (s *story) rollBack(t *testing.T) {
	s.helm(t, "rollback", release, "1", untilCurrent, atMost)
	s.ready(t)
	s.restart(t, s.agents[:perWorker]...)
	s.restart(t, s.agents[perWorker:]...)
	for component, want := range map[string]string{"agent": s.old, "gateway": s.old, "operator": s.old, "console": s.old} {
		s.checkImages(t, component, want)
	}
	s.check(t, s.files)
	s.check(t, s.photos)
}

// kept are what outlives a release.
var kept = []string{
	"customresourcedefinition/redundancypolicies.restripe.io", "customresourcedefinition/redundancyschemes.restripe.io",
	"customresourcedefinition/storagebackends.restripe.io", "customresourcedefinition/transitions.restripe.io",
	"storagebackend.restripe.io/restripe", "redundancypolicy.restripe.io/files", "redundancypolicy.restripe.io/photos",
}

// uninstall: nothing runs any more; the kinds, what is declared and the volumes stay.
func (s *story) uninstall(t *testing.T) {
	s.helm(t, "uninstall", release)
	eventually(t, "waiting for all pods to be gone", func(ctx context.Context) error {
		left, err := s.try(ctx, "", "kubectl", "-n", namespace, "get", "pods,statefulsets,deployments,services", "-o", "name")
		if err == nil && left != "" {
			err = errors.New(left)
		}
		return err
	})
	for _, name := range kept {
		s.kubectl(t, "", "get", name)
	}
	claims := s.kubectl(t, "", "-n", namespace, "get", "persistentvolumeclaims", "-o", "jsonpath={.items[*].status.phase}")
	if want := len(s.agents) + 2; strings.Count(claims, "Bound") != want {
		t.Errorf("the claims are %s, want %d that are bound", claims, want)
	}
}

// again: installed under the same name, it goes on with what is stored.
func (s *story) again(t *testing.T) {
	s.helm(t, "install", release, chart, "-f", s.values(t, s.new), untilCurrent, atMost)
	s.ready(t)
	s.check(t, s.files)
	s.check(t, s.photos)
	page, err := s.gateway.List(t.Context(), "files/", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, object := range page.Objects {
		keys = append(keys, object.Key)
	}
	if want := slices.Sorted(maps.Keys(s.files)); !slices.Equal(keys, want) {
		t.Errorf("there are %q, want %q", keys, want)
	}
}

// takeAway: what operator/config/README.md and the chart's say, after which nothing is left.
func (s *story) takeAway(t *testing.T) {
	s.kubectl(t, "", "delete", "redundancypolicies,transitions,redundancyschemes", "--all", "--timeout=5m")
	s.kubectl(t, "", "annotate", "storagebackend", "restripe", "restripe.io/confirm-delete=restripe")
	s.kubectl(t, "", "delete", "storagebackend", "restripe", "--wait=false")
	s.kubectl(t, "", "patch", "storagebackend", "restripe", "--type", "merge", "-p", `{"metadata":{"finalizers":null}}`)
	s.helm(t, "uninstall", release)
	s.kubectl(t, "", "-n", namespace, "delete", "statefulset", "redis", "--ignore-not-found", "--timeout=2m")
	s.kubectl(t, "", "delete", "-f", filepath.Join(chart, "crds"), "--timeout=5m")
	s.kubectl(t, "", "-n", namespace, "delete", "persistentvolumeclaims", "--all", "--timeout=5m")
	s.kubectl(t, "", "delete", "namespace", namespace, "--timeout=5m")
	for _, kinds := range []string{"customresourcedefinitions", "clusterroles,clusterrolebindings", "validatingadmissionpolicies"} {
		if left := s.kubectl(t, "", "get", kinds, "-o", "name"); strings.Contains(left, "restripe") {
			t.Errorf("left is\n%s", left)
		}
	}
	s.kubectl(t, "", "delete", "persistentvolumes", "--all", "--timeout=5m")
}

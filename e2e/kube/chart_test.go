package kube_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/operator/config"
)

const chart = "../../playbooks/chart"

// helm runs real helm commands against a server, or without one.
type helm struct{ path, kubeconfig, home string }

func newHelm(t *testing.T) *helm {
	t.Helper()
	return &helm{path: program(t, "helm"), kubeconfig: filepath.Join(t.TempDir(), "none"), home: t.TempDir()}
}

func (h *helm) command(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), h.path, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+h.kubeconfig,
		"HELM_CACHE_HOME="+h.home, "HELM_CONFIG_HOME="+h.home, "HELM_DATA_HOME="+h.home)
	return command
}

func (h *helm) run(t *testing.T, arguments ...string) string {
	t.Helper()
	command := h.command(t, arguments...)
	said := &bytes.Buffer{}
	command.Stderr = said
	output, err := command.Output()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(arguments, " "), err, said)
	}
	return string(output)
}

// variants are values that people have.
var variants = map[string]string{
	"small": `gateways: {users: people}`,
	"open": `
gateways: {anybody: true}
monitoring: {enabled: true}
networkPolicies: {scrapers: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}
`,
	"readme": `
gateways: {anybody: true}                 # or users: a Secret that says who may do what
agents: [{name: disk, replicas: 15, storage: {size: 10Gi}}]
agent: {shareMachines: true}              # to try it on fewer machines than agents
`,
	"large": `
gateways:
  {users: people, replicas: 3, hosts: [objects.example.org], autoscaling: {enabled: true},
   redisPort: 6379, memcachedPort: 11211, s3Port: 9000, s3Domains: [s3.example.org],
   classes: [{name: default, ladder: "rep(3),rs(4,2)", prefixes: [""]}]}
catalog: {secret: redis}
agents:
- {name: a, domain: zone-a, replicas: 3, storage: {size: 1Ti, class: fast}, nodeSelector: {topology.kubernetes.io/zone: zone-a}}
- {name: cache, stores: ["memcached://cache-0:11211", "memcached://cache-1:11211"]}
- {name: redis, storeSecrets: [redis-0], tolerations: [{key: stores, operator: Exists}]}
monitoring: {enabled: true, tokenSecret: prometheus, labels: {release: prometheus}}
traces: {collector: "http://collector:4318"}
`,
	"etcd": `
gateways: {users: people, replicas: 2}
catalog:
  address: "etcds://etcd-0.etcd:2379,etcd-1.etcd:2379,etcd-2.etcd:2379?cacert=/etc/restripe/catalog/ca.crt\
    &cert=/etc/restripe/catalog/tls.crt&key=/etc/restripe/catalog/tls.key"
  files: [{secret: etcd-client}]
`,
	"postgres": `
gateways: {users: people, autoscaling: {enabled: true}}
catalog:
  address: "postgres://app@pg-rw:5432/app?sslmode=verify-full&sslrootcert=/etc/restripe/catalog/ca.crt\
    &passfile=/etc/restripe/catalog/pgpass"
  files: [{secret: pg-ca, keys: [ca.crt]}, {secret: pg-app, keys: [pgpass]}]
`,
	"redis": `
gateways: {users: people, replicas: 2}
catalog:
  address: "rediss://redis:6379?cacert=/etc/restripe/catalog/ca.crt&passwordfile=/etc/restripe/catalog/password"
  files: [{secret: redis-ca, keys: [ca.crt]}, {secret: redis, keys: [password]}]
`,
	"cloudnativepg": `
gateways: {users: people, replicas: 2}
catalog: {secret: pg-app, key: uri}
`,
	"rook": `
gateways: {users: people}
agents:
- {name: ceph-a, pools: [restripe.worker-a], nodeSelector: {kubernetes.io/hostname: worker-a}}
- {name: ceph-b, pools: [restripe.worker-b], nodeSelector: {kubernetes.io/hostname: worker-b}}
- {name: ceph-c, pools: [restripe.worker-c], nodeSelector: {kubernetes.io/hostname: worker-c}}
- {name: more, pools: [restripe.worker-d, restripe.worker-e]}
ceph: {secret: rook-restripe}
`,
	"secrets": `
gateways: {users: people}
catalog: {address: "sqlite:/var/lib/restripe/other.db"}
tls: {from: secrets}
console: {enabled: false}
networkPolicies: {clients: [{namespaceSelector: {}}]}
`,
}

// rendered returns the objects of the chart with values.
func rendered(t *testing.T, h *helm, values string) (objects []*unstructured.Unstructured) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	h.run(t, "lint", "--strict", chart, "-f", file)
	for _, document := range strings.Split(h.run(t, "template", "r", chart, "-n", "store", "-f", file), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

// named returns the object of a kind and a name.
func named(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// Whatever values people have, what is made of them is safe to run: nobody is root, nothing can be written but volumes, images have
// versions, everything has limits and probes, and each name is there once.
func TestChartIsSafeWithAllValues(t *testing.T) {
	h := newHelm(t)
	readme, err := os.ReadFile("../../README.md")
	if err != nil || !strings.Contains(string(readme), strings.ReplaceAll(strings.TrimSpace(variants["readme"]), "\n", "\n    ")) {
		t.Errorf("README.md does not have the values\n%s%v", variants["readme"], err)
	}
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, object := range rendered(t, h, values) {
				is := object.GetKind() + " " + object.GetName()
				if seen[is] {
					t.Errorf("%s is there twice", is)
				}
				seen[is] = true
				if object.GetKind() != "StatefulSet" && object.GetKind() != "Deployment" {
					continue
				}
				checkPod(t, is, object)
			}
			if !seen["StatefulSet r-gateway"] || !seen["Deployment r-operator"] || !seen["PodDisruptionBudget r-agents"] {
				t.Errorf("there are %v", seen)
			}
		})
	}
}

// checkPod holds the pods of a workload to what linters of Kubernetes ask for.
func checkPod(t *testing.T, is string, object *unstructured.Unstructured) {
	t.Helper()
	pod, _, _ := unstructured.NestedMap(object.Object, "spec", "template", "spec")
	text := func(of map[string]any, path ...string) string {
		value, _, _ := unstructured.NestedFieldNoCopy(of, path...)
		return fmt.Sprint(value)
	}
	if text(pod, "securityContext", "runAsNonRoot") != "true" || text(pod, "securityContext", "seccompProfile", "type") != "RuntimeDefault" {
		t.Errorf("%s: its pods run as %v", is, pod["securityContext"])
	}
	account := text(pod, "serviceAccountName")
	asks := account == "restripe-operator" || account == "restripe-console"
	if token := text(pod, "automountServiceAccountToken"); (token == "true") != asks {
		t.Errorf("%s has a token: %s, of the account %s", is, token, account)
	}
	containers, _, _ := unstructured.NestedSlice(pod, "containers")
	for _, one := range containers {
		container := one.(map[string]any)
		if text(container, "securityContext", "allowPrivilegeEscalation") != "false" ||
			text(container, "securityContext", "readOnlyRootFilesystem") != "true" ||
			text(container, "securityContext", "capabilities", "drop") != "[ALL]" {
			t.Errorf("%s: a container may do %v", is, container["securityContext"])
		}
		if image := text(container, "image"); !regexp.MustCompile(`:v\d+\.\d+\.\d+$`).MatchString(image) {
			t.Errorf("%s runs the image %s", is, image)
		}
		if text(container, "resources", "limits", "memory") == "<nil>" || text(container, "resources", "requests", "cpu") == "<nil>" {
			t.Errorf("%s has the resources %v", is, container["resources"])
		}
		if container["livenessProbe"] == nil || container["readinessProbe"] == nil {
			t.Errorf("%s lacks probes", is)
		}
		if text(container, "name") == "gateway" && text(container, "lifecycle", "preStop") == "<nil>" {
			t.Errorf("%s ends at once, while clients are still sent to it", is)
		}
	}
}

// Every node and every part has a certificate of its own identity, and what gateways read names every node once.
func TestChartNamesEveryNode(t *testing.T) {
	objects := rendered(t, newHelm(t), variants["large"])
	identities := map[string]string{}
	for _, object := range objects {
		if object.GetKind() == "Certificate" {
			uris, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "uris")
			secret, _, _ := unstructured.NestedString(object.Object, "spec", "secretName")
			identities[secret] = strings.Join(uris, " ")
		}
	}
	for secret, want := range map[string]string{
		"r-agent-a-0": "agent/a-0", "r-agent-a-2": "agent/a-2", "r-agent-cache-1": "agent/cache-1", "r-agent-redis-0": "agent/redis-0",
		"r-gateway": "gateway/gateway", "r-operator": "operator/operator", "r-console": "console/console",
	} {
		if identities[secret] != "spiffe://restripe/"+want {
			t.Errorf("the certificate in %s is of %s, want %s", secret, identities[secret], want)
		}
	}
	var list struct {
		Nodes []struct{ ID, Address, Domain string }
	}
	text, _, _ := unstructured.NestedString(named(t, objects, "ConfigMap", "r-gateway").Object, "data", "nodes.yaml")
	if err := yaml.Unmarshal([]byte(text), &list); err != nil || len(list.Nodes) != 6 {
		t.Fatalf("gateways are told of %+v, %v", list, err)
	}
	for _, node := range list.Nodes {
		if node.Address != "r-"+node.ID+".store.svc:7481" || (node.Domain == "zone-a") != strings.HasPrefix(node.ID, "a-") {
			t.Errorf("gateways are told of %+v", node)
		}
		service := named(t, objects, "Service", "r-"+node.ID)
		selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
		agent := named(t, objects, "StatefulSet", "r-"+node.ID)
		labels, _, _ := unstructured.NestedStringMap(agent.Object, "spec", "template", "metadata", "labels")
		for key, value := range selector {
			if labels[key] != value {
				t.Errorf("the Service of %s looks for %s=%s, and its pod has %q", node.ID, key, value, labels[key])
			}
		}
	}
	scaled := named(t, objects, "StatefulSet", "r-gateway")
	if _, says, _ := unstructured.NestedFieldNoCopy(scaled.Object, "spec", "replicas"); says {
		t.Error("the number of gateways is both the autoscaler's and the chart's")
	}
	if rules, _, _ := unstructured.NestedSlice(named(t, objects, "PrometheusRule", "r").Object, "spec", "groups"); len(rules) < 4 {
		t.Errorf("the alerts are %v", rules)
	}
}

// An agent is restarted when people say so, and they see from its pod whether it has what is declared: whatever reaches what it reads
// changes its pod. No two agents are on one machine unless that is wanted.
func TestChartAgentsChangeOneByOne(t *testing.T) {
	h := newHelm(t)
	agent := func(values string) (pod map[string]any, text string) {
		t.Helper()
		objects := rendered(t, h, values)
		set := named(t, objects, "StatefulSet", "r-disk-0")
		if how, _, _ := unstructured.NestedString(set.Object, "spec", "updateStrategy", "type"); how != "OnDelete" {
			t.Errorf("agents are updated by %s, all at once", how)
		}
		pod, _, _ = unstructured.NestedMap(set.Object, "spec", "template")
		text, _, _ = unstructured.NestedString(named(t, objects, "ConfigMap", "r-disk-0").Object, "data", "agent.yaml")
		return pod, text
	}
	const open = "gateways: {anybody: true}\n"
	was, read := agent(open)
	now, reads := agent(open + "traces: {collector: 'http://collector:4318'}\n")
	path := []string{"metadata", "annotations", "checksum/config"}
	before, _, _ := unstructured.NestedString(was, path...)
	after, _, _ := unstructured.NestedString(now, path...)
	if read == reads || before == "" || before == after {
		t.Errorf("an agent reads\n%s\nafter\n%s\nand its pod says %s after %s", reads, read, after, before)
	}
	if _, apart, _ := unstructured.NestedMap(was, "spec", "affinity", "podAntiAffinity"); !apart {
		t.Error("several agents may be on one machine")
	}
	shared, _ := agent(open + "agent: {shareMachines: true}\n")
	if _, apart, _ := unstructured.NestedMap(shared, "spec", "affinity"); apart {
		t.Error("agents cannot share a machine where they may")
	}
}

// What the programs read is what they take: the configuration of every node and of the gateways, with certificates and users.
func TestChartConfigurationIsTaken(t *testing.T) {
	h := newHelm(t)
	folder := t.TempDir()
	agent := built(t, "github.com/restripe/restripe/tui/restripe-agent")
	authority, err := pki.Create(filepath.Join(folder, "ca"), "restripe")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("users.yaml", "users: [{name: ada, tokenSHA256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b, verbs: [get]}]\n")
	write("store", "redis://:secret@redis:6379\n")
	write("ceph.conf", "[global]\nmon_host = 10.0.0.1\n")
	write("keyring", "[client.restripe]\nkey = none\n")
	known := pki.Identity{Role: pki.RoleGateway, Name: "gateway"} // to the catalog
	if _, err := authority.Issue(known, nil, 0, filepath.Join(folder, "catalog")); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join("catalog", "pgpass"), "pg-rw:5432:app:app:secret\n")
	write(filepath.Join("catalog", "password"), "secret\n")
	for name, values := range variants {
		var files []string
		for _, object := range rendered(t, h, values) {
			if object.GetKind() != "ConfigMap" {
				continue
			}
			data, _, _ := unstructured.NestedStringMap(object.Object, "data")
			for file, text := range data {
				identity := pki.Identity{Role: pki.RoleGateway, Name: "gateway"}
				if node, is := strings.CutPrefix(object.GetName(), "r-"); is && file == "agent.yaml" {
					identity = pki.Identity{Role: pki.RoleAgent, Name: node}
				}
				certificate := filepath.Join(folder, name+"-"+object.GetName())
				if _, err := os.Stat(certificate); err != nil {
					if _, err := authority.Issue(identity, nil, 0, certificate); err != nil {
						t.Fatal(err)
					}
				}
				text = strings.NewReplacer("/etc/restripe/tls", certificate, "/etc/restripe/users/", folder+"/", "/etc/restripe/store/", folder+"/",
					"/etc/ceph/", folder+"/",
					"/etc/restripe/catalog/", filepath.Join(folder, "catalog")+"/",
					"/etc/restripe/config/", filepath.Join(folder, name)+"-r-gateway-").Replace(text)
				path := write(name+"-"+object.GetName()+"-"+file, text)
				if strings.HasPrefix(text, "command:") || strings.Contains(text, "\ncommand:") {
					files = append(files, path)
				}
			}
		}
		command := exec.CommandContext(t.Context(), agent, append([]string{"check-config"}, files...)...)
		command.Env = append(os.Environ(), "RESTRIPE_CATALOG=redis://redis:6379")
		if output, err := command.CombinedOutput(); err != nil || len(files) < 6 {
			t.Errorf("%s: %d files: %v\n%s", name, len(files), err, output)
		}
	}
}

// What cannot work is refused with what to do.
func TestChartRefusesWhatCannotWork(t *testing.T) {
	h := newHelm(t)
	for values, want := range map[string]string{
		"":                                     "say gateways.anybody=true",
		"gateways.users=x,gateways.replicas=2": "etcd, PostgreSQL or Redis: name it in catalog.address",
		"gateways.users=x,gateways.autoscaling.enabled=true,catalog.address=sqlite:/var/lib/restripe/a.db": "catalog of one gateway",
		"gateways.users=x,catalog.address=mem:":                              "/catalog/address",
		"gateways.users=x,catalog.address=postgres://a:b@pg/app":             "there is a password in it",
		"gateways.users=x,catalog.address=etcd://a:2379,catalog.secret=etcd": "take catalog.address or catalog.secret away",
		"gateways.users=x,gateways.anybody=true":                             "take gateways.users or gateways.anybody away",
		"gateways.users=x,monitoring.enabled=true":                           "monitoring.tokenSecret",
		"gateways.users=x,cluster=A_B":                                       "/cluster",
		"gateways.users=x,agents[0].name=disk":                               "needs one of storage",
		"gateways.users=x,agents[0].name=Disk":                               "/agents/0/name",
		"gateways.users=x,gateway.replicas=2":                                "gateway",
		"gateways.users=x,agents[0].name=a,agents[0].stores={redis://a},agents[1].name=a,agents[1].stores={redis://b}": "two sets are named a",
		"gateways.users=x,agents[0].name=a,agents[0].storage.size=1Gi":                                                 "how many agents",

		"gateways.users=x,agents[0].name=a,agents[0].pools={restripe.a}":                       "ceph.secret: the set a has pools",
		"gateways.users=x,agents[0].name=a,agents[0].pools={a/b},ceph.secret=s":                "/agents/0/pools/0",
		"gateways.users=x,agents[0].name=a,agents[0].pools={a},agents[0].stores={redis://a:1}": "needs one of storage",
		"gateways.users=x,gateways.s3Port=70000":                                               "/gateways/s3Port",
		"gateways.users=x,gateways.cacheMiB=-1":                                                "/gateways/cacheMiB",
	} {
		output, err := h.command(t, "template", "r", chart, "--set", values).CombinedOutput()
		if err == nil || !strings.Contains(string(output), want) {
			t.Errorf("%s: %v\n%s", values, err, output)
		}
	}
}

// Gateways find the catalog where the values say: its address, in their configuration or out of a Secret; the files that the address
// names, and no others of their Secrets; and a volume where the catalog is a file, only there.
func TestChartCatalogs(t *testing.T) {
	h := newHelm(t)
	for _, test := range []struct{ variant, configured, variable, files, claims string }{
		{"small", "sqlite:/var/lib/restripe/catalog.db", "", "", "catalog"},
		{"secrets", "sqlite:/var/lib/restripe/other.db", "", "", "catalog"},
		{"large", "", "redis/catalog", "", ""},
		{"cloudnativepg", "", "pg-app/uri", "", ""},
		{"etcd", "etcds://etcd-0.etcd:2379,etcd-1.etcd:2379,etcd-2.etcd:2379?cacert=/etc/restripe/catalog/ca.crt" +
			"&cert=/etc/restripe/catalog/tls.crt&key=/etc/restripe/catalog/tls.key", "", "etcd-client[]", ""},
		{"redis", "rediss://redis:6379?cacert=/etc/restripe/catalog/ca.crt&passwordfile=/etc/restripe/catalog/password", "",
			"redis-ca[ca.crt] redis[password]", ""},
		{"postgres", "postgres://app@pg-rw:5432/app?sslmode=verify-full&sslrootcert=/etc/restripe/catalog/ca.crt" +
			"&passfile=/etc/restripe/catalog/pgpass", "", "pg-ca[ca.crt] pg-app[pgpass]", ""},
	} {
		objects := rendered(t, h, variants[test.variant])
		text, _, _ := unstructured.NestedString(named(t, objects, "ConfigMap", "r-gateway").Object, "data", "gateway.yaml")
		var configured struct{ Catalog string }
		if err := yaml.Unmarshal([]byte(text), &configured); err != nil {
			t.Fatal(err)
		}
		gateway := statefulSet(t, objects, "r-gateway")
		container := gateway.Spec.Template.Spec.Containers[0]
		variable := ""
		for _, one := range container.Env {
			if one.Name == "RESTRIPE_CATALOG" {
				variable = one.ValueFrom.SecretKeyRef.Name + "/" + one.ValueFrom.SecretKeyRef.Key
			}
		}
		var files []string
		for _, volume := range gateway.Spec.Template.Spec.Volumes {
			if volume.Name != "catalog-files" {
				continue
			}
			for _, source := range volume.Projected.Sources {
				var keys []string
				for _, item := range source.Secret.Items {
					keys = append(keys, item.Path)
				}
				files = append(files, source.Secret.Name+"["+strings.Join(keys, " ")+"]")
			}
		}
		mounted := slices.ContainsFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool {
			return mount.MountPath == "/etc/restripe/catalog"
		})
		claims := ""
		for _, claim := range gateway.Spec.VolumeClaimTemplates {
			claims += claim.Name
		}
		got := []string{configured.Catalog, variable, strings.Join(files, " "), claims}
		want := []string{test.configured, test.variable, test.files, test.claims}
		if !slices.Equal(got, want) || mounted != (test.files != "") {
			t.Errorf("%s: the catalog is %q, want %q; its files are mounted: %v", test.variant, got, want, mounted)
		}
	}
}

// statefulSet returns one of the chart, as Kubernetes reads it.
func statefulSet(t *testing.T, objects []*unstructured.Unstructured, name string) *appsv1.StatefulSet {
	t.Helper()
	text, err := yaml.Marshal(named(t, objects, "StatefulSet", name).Object)
	if err != nil {
		t.Fatal(err)
	}
	set := &appsv1.StatefulSet{}
	if err := yaml.UnmarshalStrict(text, set); err != nil {
		t.Fatal(err)
	}
	return set
}

// An agent of a pool of Ceph runs the image that has Ceph, on the machine of its set, and finds the configuration and the key of the
// cluster in the Secret where its store's address says; others see nothing of that, and a backend of pools is one of Ceph.
func TestChartBesideCeph(t *testing.T) {
	h := newHelm(t)
	objects := rendered(t, h, variants["rook"])
	pools := map[string]string{"ceph-a-0": "restripe.worker-a", "ceph-c-0": "restripe.worker-c", "more-1": "restripe.worker-e"}
	for node, pool := range pools {
		text, _, _ := unstructured.NestedString(named(t, objects, "ConfigMap", "r-"+node).Object, "data", "agent.yaml")
		var configured struct{ Store, Direct string }
		if err := yaml.Unmarshal([]byte(text), &configured); err != nil {
			t.Fatal(err)
		}
		want := "ceph:" + pool + "?conf=/etc/ceph/ceph.conf&keyring=/etc/ceph/keyring&user=restripe"
		if configured.Store != want || configured.Direct != "" {
			t.Errorf("%s keeps blocks in %+v, want %s", node, configured, want)
		}
		pod := statefulSet(t, objects, "r-"+node).Spec.Template.Spec
		if image := pod.Containers[0].Image; !strings.HasPrefix(image, "localhost/restripe-agent-ceph:v") {
			t.Errorf("%s runs %s", node, image)
		}
		mounted := slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(mount corev1.VolumeMount) bool {
			return mount.Name == "ceph" && mount.MountPath == "/etc/ceph" && mount.ReadOnly
		})
		secret := slices.ContainsFunc(pod.Volumes, func(volume corev1.Volume) bool {
			return volume.Name == "ceph" && volume.Secret != nil && volume.Secret.SecretName == "rook-restripe"
		})
		if !mounted || !secret {
			t.Errorf("%s mounts %+v of %+v", node, pod.Containers[0].VolumeMounts, pod.Volumes)
		}
		set, is := strings.CutSuffix(node, "-0")
		if is && pod.NodeSelector["kubernetes.io/hostname"] != "worker-"+strings.TrimPrefix(set, "ceph-") {
			t.Errorf("%s runs on %v", node, pod.NodeSelector)
		}
	}
	if kind, _, _ := unstructured.NestedString(named(t, objects, "StorageBackend", "restripe").Object, "spec", "type"); kind != "ceph" {
		t.Errorf("the backend is declared to be %s", kind)
	}
	for _, volume := range statefulSet(t, rendered(t, h, variants["small"]), "r-disk-0").Spec.Template.Spec.Volumes {
		if volume.Name == "ceph" {
			t.Errorf("an agent without Ceph mounts %+v", volume)
		}
	}
	readme, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(variants["rook"]) {
		shown := strings.Contains(line, "ceph-a") || strings.Contains(line, "ceph-b") || strings.HasPrefix(line, "ceph:")
		if shown && !strings.Contains(string(readme), line) {
			t.Errorf("README.md of the chart does not have %s", line)
		}
	}
}

// Every protocol of clients that is asked for is one that gateways listen for, that their Service has, and that the network lets through;
// none is where nothing is asked for. So is the memory for small objects.
func TestChartServesProtocols(t *testing.T) {
	h := newHelm(t)
	look := func(values string) (config map[string]any, ports map[string]int32) {
		t.Helper()
		objects := rendered(t, h, values)
		text, _, _ := unstructured.NestedString(named(t, objects, "ConfigMap", "r-gateway").Object, "data", "gateway.yaml")
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		ports = map[string]int32{}
		for _, port := range statefulSet(t, objects, "r-gateway").Spec.Template.Spec.Containers[0].Ports {
			ports["container "+port.Name] = port.ContainerPort
		}
		offered, _, _ := unstructured.NestedSlice(named(t, objects, "Service", "r-gateway").Object, "spec", "ports")
		for _, one := range offered {
			port := one.(map[string]any)
			number, err := strconv.ParseInt(fmt.Sprint(port["port"]), 10, 32)
			if err != nil || port["targetPort"] != port["name"] {
				t.Fatalf("the Service has %v", port)
			}
			ports["service "+port["name"].(string)] = int32(number)
		}
		rules, _, _ := unstructured.NestedSlice(named(t, objects, "NetworkPolicy", "r-gateways").Object, "spec", "ingress")
		for _, one := range rules[0].(map[string]any)["ports"].([]any) {
			ports["network "+one.(map[string]any)["port"].(string)] = 1
		}
		return config, ports
	}
	config, ports := look("gateways: {users: people, cacheMiB: 256, redisPort: 6379, memcachedPort: 11211, " +
		"s3Port: 9000, s3Domains: [s3.example.org]}\n")
	for name, number := range map[string]int32{"redis": 6379, "memcached": 11211, "s3": 9000} {
		if config[name] != fmt.Sprintf("0.0.0.0:%d", number) || ports["container "+name] != number ||
			ports["service "+name] != number || ports["network "+name] != 1 {
			t.Errorf("%s: gateways listen at %v, and the ports are %v", name, config[name], ports)
		}
	}
	if fmt.Sprint(config["cache"], config["s3-domain"]) != "256 [s3.example.org]" {
		t.Errorf("gateways keep %v MiB, and buckets are below %v", config["cache"], config["s3-domain"])
	}
	config, ports = look(variants["small"])
	for _, name := range []string{"redis", "memcached", "s3", "s3-domain", "cache"} {
		if config[name] != nil || ports["container "+name]+ports["service "+name]+ports["network "+name] != 0 {
			t.Errorf("%s is served where nothing asks for it: %v, %v", name, config, ports)
		}
	}
}

// Kustomize makes of the chart what Helm makes of it, as README.md of the chart says.
func TestChartInKustomize(t *testing.T) {
	h := newHelm(t)
	folder := t.TempDir()
	home, err := filepath.Abs(filepath.Dir(chart))
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"values.yaml": variants["large"],
		"kustomization.yaml": "helmGlobals: {chartHome: " + home + "}\nhelmCharts:\n" +
			"- {name: chart, releaseName: r, namespace: store, includeCRDs: true, valuesFile: values.yaml}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k := &kubectl{path: program(t, "kubectl"), home: t.TempDir()}
	made := strings.Split(k.run(t, "", "kustomize", "--enable-helm", "--helm-command", h.path, folder), "\n---\n")
	definitions, err := config.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	if want := len(rendered(t, h, variants["large"])) + len(definitions); len(made) != want {
		t.Errorf("kustomize makes %d objects, Helm %d", len(made), want)
	}
}

// TestChartOnKubernetes: a server takes all of it without a warning, under the strictest rules for pods; a second time changes nothing;
// upgrade, rollback; and what is declared and the kinds are there when the release is gone.
func TestChartOnKubernetes(t *testing.T) {
	h := newHelm(t)
	k := &kubectl{path: program(t, "kubectl"), home: t.TempDir()}
	server := startKubernetes(t)
	k.kubeconfig, h.kubeconfig = server.kubeconfig, server.kubeconfig
	k.run(t, "", "create", "namespace", "store")
	k.run(t, "", "label", "namespace", "store", "pod-security.kubernetes.io/warn=restricted", "pod-security.kubernetes.io/enforce=restricted")
	install := func(arguments ...string) string {
		t.Helper()
		arguments = append(arguments, "r", chart, "-n", "store", "--set", "gateways.users=people,tls.from=secrets")
		output, err := h.command(t, arguments...).CombinedOutput()
		if err != nil {
			t.Fatalf("helm %v: %v\n%s", arguments, err, output)
		}
		return string(output)
	}
	const address = "https://r-gateway.store.svc:7480"
	if said := install("install"); strings.Contains(strings.ToLower(said), "warning") || !strings.Contains(said, address) {
		t.Errorf("installing says\n%s", said)
	}
	definitions, err := config.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	server.awaitServed(t, definitions)
	generations := func() string {
		return k.run(t, "", "-n", "store", "get", "statefulsets,deployments,services,configmaps", "-o",
			"jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.generation}{\"\\n\"}{end}")
	}
	first := generations()
	install("upgrade")
	if again := generations(); again != first {
		t.Errorf("an upgrade to the same changed\n%s\nto\n%s", first, again)
	}
	install("upgrade", "--set", "operator.replicas=3")
	replicas := func() string {
		return k.run(t, "", "-n", "store", "get", "deployment", "r-operator", "-o", "jsonpath={.spec.replicas}")
	}
	if have := replicas(); have != "3" {
		t.Errorf("after the upgrade there are %s operators", have)
	}
	h.run(t, "rollback", "r", "1", "-n", "store")
	if have := replicas(); have != "2" {
		t.Errorf("after the rollback there are %s operators", have)
	}
	if at := k.run(t, "", "get", "storagebackend", "restripe", "-o", "jsonpath={.spec.gateways[0]}"); at != address {
		t.Errorf("the backend is at %s", at)
	}
	h.run(t, "uninstall", "r", "-n", "store")
	if left := k.run(t, "", "-n", "store", "get", "statefulsets,deployments,services", "-o", "name"); left != "" {
		t.Errorf("left are\n%s", left)
	}
	k.run(t, "", "get", "storagebackend", "restripe")
	k.run(t, "", "get", "customresourcedefinition", "redundancypolicies.restripe.io")
}

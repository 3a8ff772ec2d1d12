package kube_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/operator/config"
)

// into decodes a part of an object; none if it is not there.
func into(t *testing.T, object *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	part, _, err := unstructured.NestedMap(object.Object, path...)
	if err == nil && part != nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(part, value)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

// pods returns what the pods of a workload are made of.
func pods(t *testing.T, workload *unstructured.Unstructured) *corev1.PodTemplateSpec {
	t.Helper()
	template := &corev1.PodTemplateSpec{}
	into(t, workload, template, "spec", "template")
	return template
}

// monitored is what a ServiceMonitor has Prometheus ask.
type monitored struct {
	Selector  metav1.LabelSelector `json:"selector"`
	Endpoints []struct {
		Port      string `json:"port"`
		Path      string `json:"path"`
		Scheme    string `json:"scheme"`
		TLSConfig struct {
			ServerName string `json:"serverName"`
			CA         struct {
				Secret corev1.SecretKeySelector `json:"secret"`
			} `json:"ca"`
		} `json:"tlsConfig"`
		Authorization struct {
			Credentials corev1.SecretKeySelector `json:"credentials"`
		} `json:"authorization"`
	} `json:"endpoints"`
}

// Who is asked for figures can be reached: a Service leads to a port that the pods have and that they are let to, and the certificate
// there is of the name that is asked for. Where nobody is to ask, nobody is let to operator and console.
func TestChartLetsPrometheusIn(t *testing.T) {
	h := newHelm(t)
	for name, want := range map[string][]string{
		"small": nil, "secrets": nil, "open": {"console", "gateway", "operator"}, "large": {"console", "gateway", "operator"},
	} {
		objects := rendered(t, h, variants[name])
		var asked []string
		for _, object := range objects {
			if object.GetKind() == "ServiceMonitor" {
				asked = append(asked, strings.TrimPrefix(object.GetName(), "r-"))
				checkAsked(t, objects, object)
			}
		}
		if slices.Sort(asked); !slices.Equal(asked, want) {
			t.Errorf("%s: asked are %v, want %v", name, asked, want)
		}
		control := &networkingv1.NetworkPolicy{}
		into(t, named(t, objects, "NetworkPolicy", "r-control"), control)
		if (len(control.Spec.Ingress) > 0) != (want != nil) {
			t.Errorf("%s: operator and console let in %+v", name, control.Spec.Ingress)
		}
		for _, rule := range control.Spec.Ingress {
			if (len(rule.From) > 0) != (name == "open") || len(rule.Ports) != 2 {
				t.Errorf("%s: operator and console let in %+v", name, rule)
			}
		}
	}
}

func checkAsked(t *testing.T, objects []*unstructured.Unstructured, monitor *unstructured.Unstructured) {
	t.Helper()
	name := monitor.GetName()
	var spec monitored
	into(t, monitor, &spec, "spec")
	if len(spec.Endpoints) != 1 || spec.Endpoints[0].Path != "/metrics" {
		t.Fatalf("%s asks %+v", name, spec.Endpoints)
	}
	asked := spec.Endpoints[0]
	var services []*corev1.Service
	for _, object := range objects {
		if object.GetKind() == "Service" && labels.SelectorFromSet(spec.Selector.MatchLabels).Matches(labels.Set(object.GetLabels())) {
			service := &corev1.Service{}
			into(t, object, service)
			services = append(services, service)
		}
	}
	if len(services) != 1 || services[0].Name != name || services[0].Spec.Ports[0].Name != asked.Port {
		t.Fatalf("%s asks %+v at %+v", name, asked, services)
	}
	target := services[0].Spec.Ports[0].TargetPort
	reached := 0
	for _, object := range objects {
		if object.GetKind() != "Deployment" && object.GetKind() != "StatefulSet" {
			continue
		}
		template := pods(t, object)
		if !labels.SelectorFromSet(services[0].Spec.Selector).Matches(labels.Set(template.Labels)) {
			continue
		}
		reached++
		has := func(port corev1.ContainerPort) bool { return port.Name == target.StrVal }
		if !slices.ContainsFunc(template.Spec.Containers[0].Ports, has) || !letIn(t, objects, template.Labels, target) {
			t.Errorf("%s leads to %v of %s, which has %+v, or is not let there", name, &target, object.GetName(), template.Spec.Containers[0].Ports)
		}
	}
	if reached != 1 {
		t.Errorf("%s reaches %d workloads", name, reached)
	}
	if asked.Scheme != "https" {
		return
	}
	names, _, _ := unstructured.NestedStringSlice(named(t, objects, "Certificate", asked.TLSConfig.CA.Secret.Name).Object, "spec", "dnsNames")
	if asked.TLSConfig.ServerName != name+".store.svc" || !slices.Contains(names, asked.TLSConfig.ServerName) ||
		asked.Authorization.Credentials.Name == "" {
		t.Errorf("%s asks %+v, whose certificate is of %v", name, asked, names)
	}
}

// letIn reports whether a policy lets somebody to a port of pods, for which there has to be one.
func letIn(t *testing.T, objects []*unstructured.Unstructured, of map[string]string, port intstr.IntOrString) bool {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() != "NetworkPolicy" {
			continue
		}
		policy := &networkingv1.NetworkPolicy{}
		into(t, object, policy)
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range policy.Spec.Ingress {
			is := func(open networkingv1.NetworkPolicyPort) bool { return *open.Port == port }
			if selector.Matches(labels.Set(of)) && slices.ContainsFunc(rule.Ports, is) {
				return true
			}
		}
	}
	return false
}

// TestChartIsWatched runs operator and console as the chart does, with its arguments and its rights on a real API server: they answer its
// probes, show whom its ServiceMonitors have ask, by the name and with the token that these say, what the alerts are about, and show
// nobody else anything.
func TestChartIsWatched(t *testing.T) {
	h := newHelm(t)
	k := &kubectl{path: program(t, "kubectl"), home: t.TempDir()}
	server := startKubernetes(t)
	k.kubeconfig = server.kubeconfig
	k.run(t, "", "create", "namespace", "store")
	k.run(t, "", "apply", "--server-side", "-f", chart+"/crds")
	definitions, err := config.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	server.awaitServed(t, definitions)
	binary := built(t, "github.com/restripe/restripe")
	for _, name := range []string{"large", "open"} {
		objects := rendered(t, h, variants[name])
		applied := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
		for _, object := range objects {
			if group := object.GroupVersionKind().Group; group != "cert-manager.io" && group != "monitoring.coreos.com" { // which are not there
				applied.Items = append(applied.Items, *object)
			}
		}
		text, err := applied.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		k.run(t, "", "delete", "statefulsets", "-n", "store", "--all") // of which some fields cannot change
		k.run(t, string(text), "apply", "-n", "store", "-f", "-")
		w := &watched{objects: objects, server: server, binary: binary}
		t.Run(name+" operator", func(t *testing.T) {
			w.check(t, "Deployment", pki.RoleOperator, `restripe_condition{condition="Ready",kind="StorageBackend",name="restripe"`)
		})
		t.Run(name+" console", func(t *testing.T) {
			w.check(t, "StatefulSet", pki.RoleConsole, "restripe_console_audit_failures_total 0")
		})
	}
	mayNot(t, serviceAccount(t, server, "store", "restripe-metrics"), "reader of figures", []authorizationv1.ResourceAttributes{
		{Verb: "list", Group: "restripe.io", Resource: "storagebackends"},
		{Verb: "metrics", Group: "restripe.io", Resource: "transitions"},
		{Verb: "get", Resource: "secrets", Namespace: "store"},
	})
}

// watched is a chart whose programs run without containers.
type watched struct {
	objects []*unstructured.Unstructured
	server  *cluster
	binary  string
}

// readerToken is that of a user who may see figures alone.
const readerToken = "reader"

// check runs the pods of a part and asks it what Kubernetes and Prometheus ask.
func (w *watched) check(t *testing.T, kind string, role pki.Role, shows string) {
	name := "r-" + string(role)
	template := pods(t, named(t, w.objects, kind, name))
	container := template.Spec.Containers[0]
	ports := map[string]string{}
	var replaced []string
	for _, port := range container.Ports {
		ports[port.Name] = freePort(t)
		replaced = append(replaced, fmt.Sprintf("0.0.0.0:%d", port.ContainerPort), "0.0.0.0:"+ports[port.Name])
	}
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	certificate := w.certificate(t, folder, role, name)
	users := fmt.Sprintf("users: [{name: prometheus, tokenSHA256: %s, verbs: [metrics]}]\n", hashed(readerToken))
	if err := os.WriteFile(at("users.yaml"), []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	writeKubeconfig(t, at("kubeconfig"), serviceAccount(t, w.server, "store", template.Spec.ServiceAccountName))
	replaced = append(replaced, "/etc/restripe/tls", certificate, "/etc/restripe/users", folder)
	var arguments []string
	for _, argument := range container.Args {
		arguments = append(arguments, strings.NewReplacer(replaced...).Replace(argument))
	}
	command := exec.Command(w.binary, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+at("kubeconfig"), "XDG_CACHE_HOME="+folder)
	startCommand(t, command)

	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		eventually(t, probe.HTTPGet.Path, func(ctx context.Context) error {
			_, err := asks(ctx, http.DefaultClient, "http://127.0.0.1:"+ports[probe.HTTPGet.Port.StrVal]+probe.HTTPGet.Path, "")
			return err
		})
	}
	var spec monitored
	into(t, named(t, w.objects, "ServiceMonitor", name), &spec, "spec")
	asked := spec.Endpoints[0]
	address := asked.Scheme + "://127.0.0.1:" + ports[asked.Port] + asked.Path
	client := believing(t, filepath.Join(certificate, pki.AuthorityFile), asked.TLSConfig.ServerName)
	token := ""
	switch asked.Authorization.Credentials.Name {
	case "prometheus":
		token = readerToken
	case "restripe-metrics":
		token = serviceAccount(t, w.server, "store", "restripe-metrics").BearerToken
	}
	eventually(t, "figures", func(ctx context.Context) error {
		text, err := asks(ctx, client, address, token)
		if err == nil && !strings.Contains(text, shows) {
			err = fmt.Errorf("there is no %s in\n%s", shows, text)
		}
		return err
	})
	if token == "" {
		return
	}
	for _, stranger := range []string{"", "made-up"} {
		if _, err := asks(t.Context(), client, address, stranger); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("asked with the token %q: %v", stranger, err)
		}
	}
}

// certificate makes what cert-manager would make of the Certificate of a part.
func (w *watched) certificate(t *testing.T, folder string, role pki.Role, name string) string {
	t.Helper()
	hosts, _, _ := unstructured.NestedStringSlice(named(t, w.objects, "Certificate", name).Object, "spec", "dnsNames")
	authority, err := pki.Create(filepath.Join(folder, "ca"), "restripe")
	if err != nil {
		t.Fatal(err)
	}
	directory := filepath.Join(folder, "tls")
	if _, err := authority.Issue(pki.Identity{Role: role, Name: string(role)}, hosts, 0, directory); err != nil {
		t.Fatal(err)
	}
	return directory
}

func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// believing returns a client that asks for a name, of an authority.
func believing(t *testing.T, authority, name string) *http.Client {
	t.Helper()
	text, err := os.ReadFile(authority)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// asks returns what is answered, where that is 200.
func asks(ctx context.Context, client *http.Client, address, token string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	reply, err := client.Do(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(reply.Body)
	if err := errors.Join(err, reply.Body.Close()); err != nil {
		return "", err
	}
	if reply.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", reply.Status, text)
	}
	return string(text), nil
}

// Package kube_test checks the declared kinds against Kubernetes itself: the same suite that the API server of `restripe
// up` passes, on kube-apiserver built from source, and kubectl on both. `make kube` builds what it needs and runs it.
package kube_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/config"
)

// programsVariable names the folder with etcd, kube-apiserver and kubectl.
const programsVariable = "RESTRIPE_KUBE"

func program(t *testing.T, name string) string {
	t.Helper()
	folder := os.Getenv(programsVariable)
	if folder == "" {
		t.Skipf("needs %s built from source: run make kube", name)
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s: %v: run make kube", programsVariable, err)
	}
	return path
}

// startProgram runs a program until the end of the test and shows what it wrote if the test fails.
func startProgram(t *testing.T, path string, arguments ...string) {
	t.Helper()
	startCommand(t, exec.Command(path, arguments...))
}

// built returns a program of this repository.
func built(t *testing.T, of string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(of))
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, of).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", of, err, output)
	}
	return path
}

func startCommand(t *testing.T, command *exec.Cmd) {
	t.Helper()
	output := &bytes.Buffer{}
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Errorf("ending %s: %v", filepath.Base(command.Path), err)
		}
		late := time.AfterFunc(20*time.Second, func() { command.Process.Kill() })
		command.Wait()
		late.Stop()
		if t.Failed() {
			lines := strings.Split(output.String(), "\n")
			t.Logf("the last lines of %s:\n%s", filepath.Base(command.Path), strings.Join(lines[max(0, len(lines)-20):], "\n"))
		}
	})
}

// cluster is a kube-apiserver with its etcd.
type cluster struct {
	config     *rest.Config // of an administrator
	kubeconfig string
}

// startKubernetes starts one and returns when it is ready. It has RBAC, and no controllers, scheduler or nodes.
func startKubernetes(t *testing.T) *cluster {
	t.Helper()
	etcd, apiserver := program(t, "etcd"), program(t, "kube-apiserver")
	folder, err := os.MkdirTemp("", "kube") // a short path, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	at := func(name string) string { return filepath.Join(folder, name) }
	etcdURL := "unix://" + at("etcd.sock")
	startProgram(t, etcd, "--data-dir", at("etcd"), "--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
		"--listen-peer-urls", "unix://"+at("peer.sock"), "--unsafe-no-fsync", "--log-level", "error")
	token := writeSecrets(t, at)
	port := freePort(t)
	startProgram(t, apiserver, "--etcd-servers", etcdURL, "--bind-address", "127.0.0.1", "--secure-port", port, "--cert-dir", at("certs"),
		"--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none", "--token-auth-file", at("tokens.csv"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", at("accounts.pem"),
		"--service-account-signing-key-file", at("accounts.pem"), "--service-cluster-ip-range", "10.96.0.0/16", "--authorization-mode", "RBAC")
	k := &cluster{kubeconfig: at("kubeconfig")}
	k.config = &rest.Config{
		Host: "https://127.0.0.1:" + port, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: at("certs/apiserver.crt")},
	}
	k.awaitReady(t)
	writeKubeconfig(t, k.kubeconfig, k.config)
	return k
}

// writeSecrets writes the token of an administrator, which it returns, and the key that signs those of service accounts.
func writeSecrets(t *testing.T, at func(string) string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("accounts.pem"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text}), 0o600); err != nil {
		t.Fatal(err)
	}
	token := rand.Text()
	if err := os.WriteFile(at("tokens.csv"), fmt.Appendf(nil, "%s,admin,admin,system:masters\n", token), 0o600); err != nil {
		t.Fatal(err)
	}
	return token
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func writeKubeconfig(t *testing.T, path string, config *rest.Config) {
	t.Helper()
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"kube": {Server: config.Host, CertificateAuthority: config.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"kube": {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"kube": {Cluster: "kube", AuthInfo: "kube"}},
		CurrentContext: "kube",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls what nobody tells of.
func eventually(t *testing.T, what string, try func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v (%v)", what, err, last)
	}
}

func (k *cluster) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, "waiting for kube-apiserver", func(ctx context.Context) error {
		if _, err := os.Stat(k.config.CAFile); err != nil {
			return err
		}
		clients, err := clientset.NewForConfig(k.config)
		if err != nil {
			return err
		}
		return clients.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// install declares the kinds and returns when they are served.
func (k *cluster) install(t *testing.T) {
	t.Helper()
	definitions, err := config.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	clients, err := clientset.NewForConfig(k.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		if _, err := clients.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	k.awaitServed(t, definitions)
}

func (k *cluster) awaitServed(t *testing.T, definitions []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	objects, err := dynamic.NewForConfig(k.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		resource := v1alpha1.GroupVersion.WithResource(definition.Spec.Names.Plural)
		eventually(t, "waiting for "+definition.Name, func(ctx context.Context) error {
			_, err := objects.Resource(resource).List(ctx, metav1.ListOptions{})
			return err
		})
	}
}

package apiserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/apiserver"
)

// serveVariable makes the test program a server on the directory it names, which ends when its standard input does.
const serveVariable = "RESTRIPE_TEST_SERVE"

func TestMain(m *testing.M) {
	if directory := os.Getenv(serveVariable); directory != "" {
		os.Exit(serve(directory))
	}
	os.Exit(m.Run())
}

func serve(directory string) int {
	began := time.Now()
	server, err := apiserver.Start(context.Background(), apiserver.Options{Directory: directory, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready", time.Since(began).Round(time.Millisecond))
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a server in a process of its own.
type process struct {
	*exec.Cmd
	lifeline io.WriteCloser
	said     *bufio.Reader
	errors   strings.Builder
}

func startProcess(t *testing.T, directory string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), serveVariable+"="+directory)
	p.Stderr = &p.errors
	var err error
	if p.lifeline, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.said = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// ready waits until the server serves and returns how long it took by its own clock.
func (p *process) ready(t *testing.T) string {
	t.Helper()
	line, err := p.said.ReadString('\n')
	if err != nil {
		t.Fatalf("the server does not get ready: %v\n%s", err, p.errors.String())
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "ready"))
}

func (p *process) kill() {
	if p.ProcessState == nil {
		p.Process.Kill()
		p.Wait()
	}
}

// configOf reads the kubeconfig as kubectl does.
func configOf(t *testing.T, directory string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", directory+"/kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func policies(t *testing.T, config *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(v1alpha1.GroupVersion.WithResource("redundancypolicies"))
}

func createPolicy(ctx context.Context, policies dynamic.ResourceInterface, name string) error {
	_, err := policies.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "restripe.io/v1alpha1", "kind": "RedundancyPolicy",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"backendRef": "store",
			"selector":   map[string]any{"prefixes": []any{name + "/"}},
			"ladder":     []any{"rep(3)"},
		},
	}}, metav1.CreateOptions{})
	return err
}

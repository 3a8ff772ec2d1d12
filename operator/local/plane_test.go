package local_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console"
	"github.com/restripe/restripe/operator/console/access"
	"github.com/restripe/restripe/operator/local"
)

var quiet = slog.New(slog.DiscardHandler)

// noCompiler is for a console that is given no texts.
type noCompiler struct{ console.Compiler }

func TestMain(m *testing.M) {
	runtimelog.SetLogger(logr.FromSlogHandler(quiet.Handler()))
	os.Exit(m.Run())
}

// An address that is taken is an error of its own, before anything is started; what can be done about it the caller knows.
func TestAnAddressThatIsTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	folder := t.TempDir()
	plane, err := local.Start(t.Context(), local.Options{Directory: folder, Logger: quiet, Listen: listener.Addr().String()})
	if err == nil {
		t.Fatalf("it listens where another does; stopped: %v", plane.Stop())
	}
	if !errors.Is(err, local.ErrListen) || !errors.Is(err, syscall.EADDRINUSE) || strings.Contains(err.Error(), "--") {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("it left %d files: %v", len(left), err)
	}
}

// A control plane declares the cluster that it is for, and serves the console at the address that it names.
func TestAControlPlane(t *testing.T) {
	folder := t.TempDir()
	plane, err := local.Start(t.Context(), local.Options{
		Directory: folder, Backend: "here", Logger: quiet, Listen: "127.0.0.1:0",
		Console: func(config *rest.Config) (*console.Server, error) {
			return console.New(console.Options{
				RESTConfig: config, Authority: access.Local(), Compiler: noCompiler{}, Logger: quiet,
				AuditDirectory: filepath.Join(folder, "audit"), HistoryDirectory: filepath.Join(folder, "history"),
			})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	if plane.Kubeconfig() != local.Kubeconfig(folder) {
		t.Errorf("the kubeconfig is %s, want %s", plane.Kubeconfig(), local.Kubeconfig(folder))
	}
	if err := plane.Operate(t.Context(), "127.0.0.1:1", launch.StoreFile); err != nil {
		t.Fatal(err)
	}
	reply, err := http.Get("http://" + plane.Console() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reply.Body)
	if err != nil || string(text) != "ok\n" {
		t.Errorf("the console says %q, %v", text, err)
	}
	if err := reply.Body.Close(); err != nil {
		t.Error(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	var backend v1alpha1.StorageBackend
	if err := api.Get(t.Context(), client.ObjectKey{Name: "here"}, &backend); err != nil {
		t.Fatal(err)
	}
	if backend.Spec.Type != "file" || len(backend.Spec.Gateways) != 1 || backend.Spec.Gateways[0] != "http://127.0.0.1:1" {
		t.Errorf("declared is %+v", backend.Spec)
	}
}

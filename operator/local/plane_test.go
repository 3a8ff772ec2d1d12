package local_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/launch"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/local"
	"github.com/restripe/restripe/operator/operatortest"
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

// start starts a control plane that looks at gateways as often as the interval says.
func start(t *testing.T, folder string, look time.Duration) *local.Plane {
	t.Helper()
	plane, err := local.Start(t.Context(), local.Options{
		Directory: folder, Backend: "here", Logger: quiet, Listen: "127.0.0.1:0", Intervals: controller.Intervals{Look: look},
		Console: func(config *rest.Config, observers *gateways.Observers) (*console.Server, error) {
			return console.New(console.Options{
				RESTConfig: config, Observers: observers, Authority: access.Local(), Compiler: noCompiler{}, Logger: quiet,
				Intervals:      console.Intervals{Look: look},
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
	return plane
}

// person returns a client of the API server.
func person(t *testing.T, plane *local.Plane) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return operatortest.Client(t, config, "person")
}

// A control plane declares the cluster that it is for, and serves the console at the address that it names.
func TestAControlPlane(t *testing.T) {
	folder := t.TempDir()
	plane := start(t, folder, 0)
	if plane.Kubeconfig() != local.Kubeconfig(folder) {
		t.Errorf("the kubeconfig is %s, want %s", plane.Kubeconfig(), local.Kubeconfig(folder))
	}
	if err := plane.Operate(t.Context(), local.Reach{Gateway: "http://127.0.0.1:1", Store: launch.StoreFile}); err != nil {
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
	var backend v1alpha1.StorageBackend
	if err := person(t, plane).Get(t.Context(), client.ObjectKey{Name: "here"}, &backend); err != nil {
		t.Fatal(err)
	}
	if backend.Spec.Type != "file" || len(backend.Spec.Gateways) != 1 || backend.Spec.Gateways[0] != "http://127.0.0.1:1" {
		t.Errorf("declared is %+v", backend.Spec)
	}
}

// Operator and console both show what only a walk over every group tells. The groups are walked over once.
func TestGroupsAreWalkedOnceForAll(t *testing.T) {
	gateway := operatortest.Start(t, 14).Gateway
	operatortest.Put(t, gateway, "a/", 3, 100<<10)
	var walks atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if api.RouteStatus.Path == r.URL.Path && !r.URL.Query().Has("brief") {
			walks.Add(1)
		}
		gateway.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	plane := start(t, t.TempDir(), time.Hour) // nobody looks again
	if err := plane.Operate(t.Context(), local.Reach{Gateway: front.URL, Store: launch.StoreFile}); err != nil {
		t.Fatal(err)
	}
	declared, shown := person(t, plane), consolev1connect.NewConsoleClient(http.DefaultClient, "http://"+plane.Console())
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for limit := time.Now().Add(2 * time.Minute); ; <-again.C {
		var backend v1alpha1.StorageBackend
		if err := declared.Get(t.Context(), client.ObjectKey{Name: "here"}, &backend); err != nil {
			t.Fatal(err)
		}
		overview, err := shown.GetOverview(t.Context(), &consolev1.GetOverviewRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if overview.Safety == consolev1.Safety_SAFETY_SAFE && backend.Status.CanLose != nil {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("the operator says %+v, the console %+v", backend.Status, overview)
		}
	}
	if n := walks.Load(); n != 1 {
		t.Errorf("the groups were walked over %d times", n)
	}
}

package screen_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/operator"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/apiserver"
	"github.com/restripe/restripe/operator/console"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/operatortest"
	"github.com/restripe/restripe/policies"
	"github.com/restripe/restripe/policies/compile"
	"github.com/restripe/restripe/tui/screen"
	"github.com/restripe/restripe/tui/screen/drive"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

var quiet = slog.New(slog.DiscardHandler)

func TestMain(m *testing.M) {
	runtimelog.SetLogger(logr.FromSlogHandler(quiet.Handler()))
	os.Exit(m.Run())
}

// world is an API server, an operator, a gateway, agents over stores in memory, and a console, all behind real sockets.
type world struct {
	t        *testing.T
	api      *apiserver.Server
	gateway  *gateway.Gateway
	declared client.Client
	options  console.Options
	address  string
	stop     func() // of the console
}

func newWorld(t *testing.T, authority access.Authority) *world {
	t.Helper()
	w := &world{t: t}
	cluster := operatortest.Start(t, 15)
	w.gateway = cluster.Gateway
	w.api = operatortest.APIServer(t)
	w.declared = operatortest.Client(t, w.api.RESTConfig(), "person")
	w.run("the operator", func(ctx context.Context) error {
		return operator.Run(ctx, operator.Options{RESTConfig: w.api.RESTConfig(), Clock: clock.RealClock{}, Logger: quiet,
			Intervals: controller.Intervals{Look: 200 * time.Millisecond, Progress: 100 * time.Millisecond}})
	})
	w.options = console.Options{
		RESTConfig: w.api.RESTConfig(), Authority: authority, Compiler: compile.Compiler{}, AuditDirectory: filepath.Join(t.TempDir(), "audit"), HistoryDirectory: t.TempDir(),
		Version: "test", Logger: quiet, Intervals: console.Intervals{Look: 50 * time.Millisecond, Sample: 100 * time.Millisecond, Stream: 10 * time.Millisecond},
	}
	w.serve("127.0.0.1:0")
	backend := &v1alpha1.StorageBackend{Spec: v1alpha1.StorageBackendSpec{Type: "file", Gateways: []v1alpha1.GatewayAddress{v1alpha1.GatewayAddress(cluster.Front.URL)}}}
	backend.SetName("real")
	if err := w.declared.Create(t.Context(), backend); err != nil {
		t.Fatal(err)
	}
	return w
}

// run runs something until the test ends, or until what it returns is called.
func (w *world) run(what string, run func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("%s: %v", what, err)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

// serve starts the console at an address, with the audit log that is there.
func (w *world) serve(address string) {
	w.t.Helper()
	server, err := console.New(w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.address = listener.Addr().String()
	w.stop = w.run("the console", func(ctx context.Context) error { return errors.Join(server.Serve(ctx, listener), server.Close()) })
}

// put stores objects of random bytes.
func (w *world) put(prefix string, count, size int) {
	w.t.Helper()
	operatortest.Put(w.t, w.gateway, prefix, count, size)
}

// cool stores what the policy of cooling is for, once its class is there.
func (w *world) cool() {
	w.t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); ; <-again.C {
		for _, class := range w.gateway.Classes() {
			if class.Name == "cooling" {
				w.put("cool/", 20, 100<<10)
				return
			}
		}
		if time.Now().After(end) {
			w.t.Fatal("the class is not declared at the gateway")
		}
	}
}

// planned waits until the one transition there is would move so many groups.
func (w *world) planned(groups int64) {
	w.t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); ; <-again.C {
		var list v1alpha1.TransitionList
		if err := w.declared.List(w.t.Context(), &list); err != nil {
			w.t.Fatal(err)
		}
		if len(list.Items) == 1 && list.Items[0].Status.Cost != nil && list.Items[0].Status.Cost.Groups == groups {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("after %v no transition would move %d groups: %+v", patience, groups, list.Items)
		}
	}
}

// declare applies a text past the screen.
func (w *world) declare(text string) {
	w.t.Helper()
	declared, findings := compile.Compiler{}.Compile(&consolev1.Document{Name: "declared.yaml", Text: text}, nil)
	for _, one := range findings {
		if one.Severity == policies.Error.String() && one.Path != "spec.backendRef" {
			w.t.Fatal(one)
		}
	}
	for _, one := range declared {
		if err := w.declared.Create(w.t.Context(), one.Object); err != nil {
			w.t.Fatal(err)
		}
	}
}

// person is somebody before a screen.
type person struct {
	*drive.Screen
	t *testing.T
}

// sit starts a screen that is ended when the test ends.
func (w *world) sit(token string, change ...func(*screen.Options)) *person {
	w.t.Helper()
	c, connections, err := screen.Dial(w.address, token, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	options := screen.Options{Client: c, Address: w.address}
	for _, change := range change {
		change(&options)
	}
	s, err := drive.Start(context.Background(), options, 100, 30, discard{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := errors.Join(s.Stop(), connections.Close()); err != nil {
			w.t.Errorf("the screen: %v", err)
		}
	})
	return &person{s, w.t}
}

type discard struct{}

func (discard) Write(data []byte) (int, error) { return len(data), nil }

// play does what a script says.
func (p *person) play(text string) {
	p.t.Helper()
	script := drive.Script{Patience: patience, Shot: func(s *drive.Screen, name string) error {
		p.t.Logf("%s:\n%s", name, s.Text())
		return nil
	}}
	if err := script.Run(p.t.Context(), p.Screen, text); err != nil {
		p.t.Fatal(err)
	}
}

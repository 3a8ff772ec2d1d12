package console

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/operator"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/apiserver"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/operatortest"
)

// stageNodes is how many nodes a stage has: those of a group of the class that gateways start with, and a spare one.
const stageNodes = 15

// patience is how long a test waits for what must come.
const patience = time.Minute

var quiet = slog.New(slog.DiscardHandler)

func TestMain(m *testing.M) {
	runtimelog.SetLogger(logr.FromSlogHandler(quiet.Handler()))
	os.Exit(m.Run())
}

// stage is an API server, gateways and agents in memory behind real sockets, and a console.
type stage struct {
	t        *testing.T
	api      *apiserver.Server
	cluster  *operatortest.Cluster
	gateway  *gateway.Gateway
	front    *httptest.Server // of the gateway
	console  *Server
	address  string // of the console
	audit    string
	client   consolev1connect.ConsoleClient
	declared client.Client // past the console
}

// newStage starts everything but an operator. change changes the console's options.
func newStage(t *testing.T, change ...func(*Options)) *stage {
	t.Helper()
	s := &stage{t: t, audit: filepath.Join(t.TempDir(), "audit")}
	cluster := operatortest.Start(t, stageNodes)
	s.cluster, s.gateway, s.front = cluster, cluster.Gateway, cluster.Front
	var err error
	s.api = operatortest.APIServer(t)
	if s.declared, err = newClient(s.api.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	options := Options{
		RESTConfig: s.api.RESTConfig(), Authority: access.Local(), Compiler: yamlCompiler{}, AuditDirectory: s.audit, HistoryDirectory: t.TempDir(),
		Version: "test", Logger: quiet, Intervals: Intervals{Look: 50 * time.Millisecond, Sample: time.Hour, Stream: time.Millisecond},
	}
	for _, c := range change {
		c(&options)
	}
	s.console, s.address = startConsole(t, options)
	s.client = consolev1connect.NewConsoleClient(http.DefaultClient, "http://"+s.address)
	s.create(&v1alpha1.StorageBackend{Spec: v1alpha1.StorageBackendSpec{Type: "file", Gateways: []v1alpha1.GatewayAddress{v1alpha1.GatewayAddress(s.front.URL)}}}, "real")
	return s
}

// startConsole starts a console and returns it with its address.
func startConsole(t *testing.T, options Options) (*Server, string) {
	t.Helper()
	server, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the console: %v", err)
		}
		if err := server.Close(); err != nil {
			t.Errorf("closing the console: %v", err)
		}
	})
	return server, listener.Addr().String()
}

// operate runs the operator until the test ends.
func (s *stage) operate() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	options := operator.Options{
		RESTConfig: s.api.RESTConfig(), Clock: clock.RealClock{}, Logger: quiet,
		Intervals: controller.Intervals{Look: 200 * time.Millisecond, Progress: 100 * time.Millisecond},
	}
	go func() { ended <- operator.Run(ctx, options) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.t.Errorf("the operator: %v", err)
		}
	})
}

// create declares an object past the console.
func (s *stage) create(object client.Object, name string) {
	s.t.Helper()
	object.SetName(name)
	if err := s.declared.Create(s.t.Context(), object); err != nil {
		s.t.Fatal(err)
	}
}

// put stores objects of random bytes.
func (s *stage) put(prefix string, count, size int) {
	s.t.Helper()
	operatortest.Put(s.t, s.gateway, prefix, count, size)
}

// eventually asks again and again until something holds.
func (s *stage) eventually(what string, holds func() bool) {
	s.t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); !holds(); <-again.C {
		if time.Now().After(end) {
			s.t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// seen waits until the console has looked at the backend.
func (s *stage) seen() {
	s.t.Helper()
	s.eventually("the console has looked at the backend", func() bool {
		nodes, err := s.client.ListNodes(s.t.Context(), &consolev1.ListNodesRequest{})
		return err == nil && len(nodes.Nodes) == stageNodes
	})
}

// grpcClient calls the console by gRPC without TLS.
func (s *stage) grpcClient() consolev1connect.ConsoleClient {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	s.t.Cleanup(transport.CloseIdleConnections)
	return consolev1connect.NewConsoleClient(&http.Client{Transport: transport}, "http://"+s.address, connect.WithGRPC())
}

// withToken sends a bearer token with every call.
func withToken(token string) connect.ClientOption {
	return connect.WithInterceptors(bearerToken(token))
}

type bearerToken string

func (b bearerToken) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		r.Header().Set("Authorization", "Bearer "+string(b))
		return next(ctx, r)
	}
}

func (b bearerToken) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set("Authorization", "Bearer "+string(b))
		return conn
	}
}

func (b bearerToken) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// yamlCompiler reads documents of YAML, strictly, and knows no rules.
type yamlCompiler struct{}

func (yamlCompiler) Compile(document *consolev1.Document, _ []client.Object) (declared []Declared, findings []*consolev1.Finding) {
	for text := range strings.SplitSeq(document.Text, "\n---\n") {
		finding := func(path, message string) *consolev1.Finding {
			return &consolev1.Finding{File: document.Name, Severity: severityError, Path: path, Message: message}
		}
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			findings = append(findings, finding("", err.Error()))
			continue
		}
		var object client.Object
		switch head.Kind {
		case "StorageBackend":
			object = &v1alpha1.StorageBackend{}
		case "RedundancyScheme":
			object = &v1alpha1.RedundancyScheme{}
		case "RedundancyPolicy":
			object = &v1alpha1.RedundancyPolicy{}
		case "Transition":
			object = &v1alpha1.Transition{}
		default:
			findings = append(findings, finding("kind", "there is no kind "+head.Kind))
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			findings = append(findings, finding("", err.Error()))
			continue
		}
		declared = append(declared, Declared{Object: object, Finding: finding})
	}
	return declared, findings
}

func (yamlCompiler) Render(object client.Object) (string, error) {
	text, err := yaml.Marshal(object)
	return string(text), err
}

// read reads the body of a reply.
func read(t *testing.T, reply *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
)

// stage is an API server, an operator and the gateways of backends.
type stage struct {
	size     scale
	folder   string
	server   *exec.Cmd
	lifeline io.Closer
	person   client.Client
	stop     context.CancelFunc
	ended    chan error
	gateways map[string]*gatewaysfake.Cluster // by address; none is added once the operator runs
	writes   atomic.Int64                     // of the operator to the API server
	reads    atomic.Int64                     // likewise, watches left out
}

// The backends: one for the many policies, one for each of the classes whose sizes are compared.
const (
	manyBackend  = "many"
	smallBackend = "thousand"
	largeBackend = "ten-million"
)

func newStage(ctx context.Context, size scale) (_ *stage, err error) {
	s := &stage{size: size, gateways: map[string]*gatewaysfake.Cluster{}, ended: make(chan error, 1)}
	if s.folder, err = os.MkdirTemp("", "restripe-control-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	config, err := s.startServer(ctx)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if s.person, err = client.New(config, client.Options{Scheme: scheme, FieldOwner: "person"}); err != nil {
		return nil, fmt.Errorf("reaching the API server: %w", err)
	}
	for name, speed := range map[string]int64{manyBackend: 1 << 40, smallBackend: smallSpeed, largeBackend: smallSpeed * (largeObjects / smallObjects)} {
		s.gateways[address(name)] = gatewaysfake.New(clock.RealClock{}, size.nodes, speed)
		backend := &v1alpha1.StorageBackend{}
		backend.Name = name
		backend.Spec = v1alpha1.StorageBackendSpec{Type: "file", Gateways: []v1alpha1.GatewayAddress{v1alpha1.GatewayAddress(address(name))}}
		if err := s.person.Create(ctx, backend); err != nil {
			return nil, fmt.Errorf("declaring backend %s: %w", name, err)
		}
	}
	s.startOperator(rest.CopyConfig(config))
	return s, nil
}

func address(backend string) string { return "http://" + backend + ":7480" }

// startServer starts the API server in a process of its own.
func (s *stage) startServer(ctx context.Context) (*rest.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	s.server = exec.CommandContext(ctx, self)
	s.server.Env = append(os.Environ(), serveVariable+"="+s.folder)
	s.server.Stderr = os.Stderr
	if s.lifeline, err = s.server.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	out, err := s.server.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	if err := s.server.Start(); err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	path, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("waiting for the API server: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", strings.TrimSpace(path))
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// counter counts the operator's calls.
type counter struct {
	s    *stage
	next http.RoundTripper
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method != http.MethodGet:
		c.s.writes.Add(1)
	case r.URL.Query().Get("watch") == "":
		c.s.reads.Add(1)
	}
	return c.next.RoundTrip(r)
}

func (s *stage) startOperator(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{s, next} })
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		s.ended <- operator.Run(ctx, operator.Options{
			RESTConfig: config, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
			Dial: func(addresses []string) (gateways.Gateway, error) {
				if g := s.gateways[addresses[0]]; g != nil {
					return g, nil
				}
				return nil, fmt.Errorf("nobody listens at %s", addresses[0])
			},
		})
	}()
}

func (s *stage) close() (err error) {
	if s.stop != nil {
		s.stop()
		err = <-s.ended
	}
	if s.lifeline != nil {
		err = errors.Join(err, s.lifeline.Close(), s.server.Wait())
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}

// patience bounds the wait for anything.
const patience = 15 * time.Minute

// until waits until something holds.
func until(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		if done, err := holds(); err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-again.C:
		}
	}
}

// Command console is a world of a size for the page to be measured with: an API server with a thousand policies and ten
// thousand transitions, a backend of five hundred nodes with its gateways, and a day of history. It prints the path of a
// kubeconfig once all of it is there, and ends with its standard input.
//
// What is measured is the console that `restripe console` serves over it: web/browser/size.ts does that, and
// `make bench-console` both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/apiserver"
)

// size is how much there is of everything.
type size struct{ policies, transitions, nodes, samples int }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	var s size
	flag.IntVar(&s.policies, "policies", 1000, "policies, each with a class of its own")
	flag.IntVar(&s.transitions, "transitions", 10_000, "transitions, of which the newest have not ended")
	flag.IntVar(&s.nodes, "nodes", 500, "nodes of the backend")
	flag.IntVar(&s.samples, "samples", 190, "samples of each class in the history")
	directory := flag.String("dir", "", "directory for the API server's state and the history; it must be empty")
	flag.Parse()
	if *directory == "" {
		return errors.New("-dir names no directory")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	now := time.Now()
	g, err := newGateway(s)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for the gateway: %w", err)
	}
	front := &http.Server{Handler: g.handler(), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- front.Serve(listener) }()
	defer func() {
		err = errors.Join(err, front.Close())
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
	}()
	server, err := apiserver.Start(ctx, apiserver.Options{
		Directory: filepath.Join(*directory, "api"), Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	config := server.RESTConfig()
	config.QPS = -1
	person, err := client.New(config, client.Options{Scheme: scheme, FieldOwner: "person"})
	if err != nil {
		return fmt.Errorf("reaching the API server: %w", err)
	}
	if err := declare(ctx, person, s, "http://"+listener.Addr().String(), now); err != nil {
		return err
	}
	if err := remember(filepath.Join(*directory, "history"), s, now); err != nil {
		return err
	}
	if _, err := fmt.Println("kubeconfig", server.Kubeconfig()); err != nil {
		return fmt.Errorf("saying where the API server is: %w", err)
	}
	return wait(ctx, os.Stdin)
}

// wait returns when nothing more can be read, or the context ends.
func wait(ctx context.Context, in io.Reader) error {
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, in)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

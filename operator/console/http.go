package console

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/serve"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
	"github.com/restripe/restripe/operator/console/packed"
)

// requestLimit bounds the messages of callers: texts with policies.
const requestLimit = 4 << 20

// Handler serves the contract (gRPC, gRPC-Web and JSON), the pages, /metrics and /healthz.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(consolev1connect.NewConsoleHandler(s, connect.WithInterceptors(&gate{s}), connect.WithReadMaxBytes(requestLimit)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") })
	figures := promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
	mux.Handle("GET /metrics", access.Guard(s.authority, metricsRight, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.updateMetrics()
		figures.ServeHTTP(w, r)
	})))
	mux.Handle("/", s.pages())
	return s.guard(mux)
}

// updateMetrics writes what is only known when it is asked for.
func (s *Server) updateMetrics() {
	s.metrics.stale.Reset() // a backend that is declared no longer is missed by nobody
	for _, source := range s.freshness("") {
		stale := 0.0
		if source.StaleSince != nil {
			stale = s.now().Sub(source.StaleSince.AsTime()).Seconds()
		}
		s.metrics.stale.WithLabelValues(source.Name).Set(stale)
	}
}

// pages serves the web pages. A path without a file is a view of the page, which finds it itself.
func (s *Server) pages() http.Handler {
	if s.options.Pages == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			writeText(w, http.StatusNotFound, "This program was built without web pages. Calls are at "+consolev1connect.ConsoleName+".\n")
		})
	}
	files := http.FileServerFS(s.options.Pages)
	send := func(w http.ResponseWriter, r *http.Request, name string) {
		w.Header().Set("Cache-Control", packed.Remembered(name))
		if s.packed.Serve(w, r, name) {
			return
		}
		if name == "index.html" {
			http.ServeFileFS(w, r, s.options.Pages, name)
			return
		}
		files.ServeHTTP(w, r)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.Trim(r.URL.Path, "/")
		if info, err := fs.Stat(s.options.Pages, name); err == nil && !info.IsDir() {
			send(w, r, name)
			return
		}
		if last := name[strings.LastIndex(name, "/")+1:]; strings.Contains(last, ".") {
			writeText(w, http.StatusNotFound, "There is no such file.\n")
			return
		}
		send(w, r, "index.html")
	})
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	// Nobody is left to tell of an error: the one who asked has gone.
	_, _ = io.WriteString(w, text)
}

// guard keeps the pages of others out. With tokens, names that others give lead here too, as those of a proxy.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := serve.Foreign(r, s.authority.Method() == access.ByLocal); why != "" {
			writeText(w, http.StatusForbidden, why+"\n")
			return
		}
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		next.ServeHTTP(w, r)
	})
}

// CheckListen refuses addresses that a console must not listen on: those that other machines can reach, unless that is
// allowed and callers must say who they are. encrypted says that it serves them over TLS.
func CheckListen(address string, allowRemote, encrypted bool, method access.Method) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address to listen on: want host:port, such as 127.0.0.1:7482", address)
	}
	switch {
	case serve.LoopbackHost(host):
		return nil
	case method == access.ByLocal:
		return fmt.Errorf("%q can be reached by other machines, and whoever reaches it could do everything: name who may with --users or --cluster-users, or listen on a loopback address such as 127.0.0.1:7482", address)
	case !allowRemote && encrypted:
		return fmt.Errorf("%q can be reached by other machines: use a loopback address such as 127.0.0.1:7482, or add --allow-remote", address)
	case !allowRemote:
		return fmt.Errorf("%q can be reached by other machines, and tokens would cross the network in the clear: "+
			"serve --https and add --allow-remote, or put a proxy with TLS before a loopback address", address)
	}
	return nil
}

// Serve runs the console and serves it until the context ends, then lets calls under way finish for a while. It closes
// the listener, not the console.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	within, stop := context.WithCancel(ctx)
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		s.Run(within)
	}()
	defer func() { <-ran }()
	defer stop()
	server := serve.Server(s.Handler())
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	if config := s.options.TLS; config != nil {
		config = config.Clone()
		config.NextProtos = []string{"h2", "http/1.1"}
		server.Protocols.SetHTTP2(true)
		listener = tls.NewListener(listener, config)
	} else {
		server.Protocols.SetUnencryptedHTTP2(true) // gRPC without TLS
	}
	if err := serve.Until(ctx, listener, server, s.StopWatches); err != nil {
		return fmt.Errorf("the console: %w", err)
	}
	return nil
}

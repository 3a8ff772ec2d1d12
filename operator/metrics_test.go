package operator

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
	"path/filepath"
	"strings"
	"testing"
	"time"

	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/pki"
)

// servingFigures serves the figures of an operator until the test ends, and returns the address.
func servingFigures(t *testing.T, options Options) string {
	t.Helper()
	options.MetricsListen = "127.0.0.1:0"
	server, err := metricsserver.NewServer(options.metrics(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	bound, is := server.(interface{ GetBindAddr() string })
	if !is {
		t.Fatalf("a %T does not say where it listens", server)
	}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for limit := time.Now().Add(time.Minute); bound.GetBindAddr() == ""; <-again.C {
		if time.Now().After(limit) {
			t.Fatal("it does not listen")
		}
	}
	return bound.GetBindAddr()
}

// figures asks for figures with a token; empty: none.
func figures(t *testing.T, client *http.Client, address, token string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	reply, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(reply.Body)
	if err := errors.Join(err, reply.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(body)
}

// Figures are for everybody where nobody is asked who they are, else for who may see them, over TLS where there is a certificate.
func TestFiguresTakeARight(t *testing.T) {
	if status, text := figures(t, http.DefaultClient, "http://"+servingFigures(t, Options{}), ""); status != http.StatusOK {
		t.Error(status, text)
	}
	lines := []string{"users:"}
	for _, name := range []access.Verb{access.Metrics, access.Apply} {
		sum := sha256.Sum256([]byte(name))
		lines = append(lines, fmt.Sprintf("- {name: %s, tokenSHA256: %s, verbs: [%s]}", name, hex.EncodeToString(sum[:]), name))
	}
	path := filepath.Join(t.TempDir(), "users.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	users, err := access.Users(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := pki.Create(filepath.Join(t.TempDir(), "ca"), "blue")
	if err != nil {
		t.Fatal(err)
	}
	directory := filepath.Join(t.TempDir(), "operator")
	if _, err := authority.Issue(pki.Identity{Role: pki.RoleOperator, Name: "o"}, []string{"127.0.0.1"}, 0, directory); err != nil {
		t.Fatal(err)
	}
	own, err := pki.Load(directory)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(directory, pki.AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	address := "https://" + servingFigures(t, Options{MetricsUsers: users, MetricsTLS: own.Serving()})
	for token, want := range map[string]int{"": 401, "wrong": 401, "apply": 403, "metrics": 200} {
		if status, text := figures(t, &http.Client{Transport: transport}, address, token); status != want {
			t.Errorf("%q: %d %s, want %d", token, status, text, want)
		}
	}
}

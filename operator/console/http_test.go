package console

import (
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/pki"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
)

// TestPlainHTTP: the contract is JSON over POST for whoever has no client.
func TestPlainHTTP(t *testing.T) {
	s := newStage(t)
	s.seen()
	s.put("a/", 3, 1000)
	var overview struct {
		Safety, SafetyLine string
		Objects            string // 64-bit numbers are text in JSON
		Sources            []struct{ Name, Answered, Error string }
	}
	s.eventually("the objects are counted", func() bool {
		reply, err := http.Post("http://"+s.address+"/restripe.console.v1.Console/GetOverview", "application/json", strings.NewReader("{}"))
		text := read(t, reply, err)
		if reply.StatusCode != http.StatusOK || !strings.HasPrefix(reply.Header.Get("Content-Type"), "application/json") {
			t.Fatalf("%s: %s", reply.Status, text)
		}
		if err := json.Unmarshal([]byte(text), &overview); err != nil {
			t.Fatal(err)
		}
		return overview.Objects == "3"
	})
	if overview.Safety != "SAFETY_SAFE" || overview.SafetyLine != "All 3 objects can lose 2 nodes." || len(overview.Sources) != 2 || overview.Sources[0].Name != "API server" {
		t.Errorf("the overview: %+v", overview)
	}
	reply, err := http.Post("http://"+s.address+"/restripe.console.v1.Console/GetPolicy", "application/json", strings.NewReader(`{"name": "none"}`))
	if text := read(t, reply, err); reply.StatusCode != http.StatusNotFound || !strings.Contains(text, `there is no policy \"none\"`) {
		t.Errorf("%s: %s", reply.Status, text)
	}
	reply, err = http.Get("http://" + s.address + "/metrics")
	for _, want := range []string{`restripe_console_calls_total{call="GetPolicy",code="not_found"} 1`, `restripe_console_source_stale_seconds{source="backend real"} 0`} {
		if text := read(t, reply, err); !strings.Contains(text, want) {
			t.Errorf("the metrics do not have %s:\n%s", want, text)
		}
		reply, err = http.Get("http://" + s.address + "/metrics")
	}
	read(t, reply, err)
}

func get(t *testing.T, address, path, host, origin string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		request.Host = host
	}
	if origin != "" {
		request.Header.Set("Origin", origin)
	}
	reply, err := http.DefaultClient.Do(request)
	return reply.StatusCode, read(t, reply, err)
}

func TestPages(t *testing.T) {
	_, address := alone(t, access.Local())
	if status, text := get(t, address, "/healthz", "", ""); status != http.StatusOK || text != "ok\n" {
		t.Error(status, text)
	}
	if status, text := get(t, address, "/", "", ""); status != http.StatusNotFound || !strings.Contains(text, "without web pages") {
		t.Error(status, text)
	}
	_, address = alone(t, access.Local(), func(o *Options) {
		o.Pages = fstest.MapFS{"index.html": {Data: []byte("the page")}, "assets/a.js": {Data: []byte("code")}}
	})
	for path, want := range map[string]string{"/": "the page", "/transitions/media-7": "the page", "/assets/a.js": "code", "/assets": "the page"} {
		if status, text := get(t, address, path, "", ""); status != http.StatusOK || text != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := get(t, address, "/assets/b.js", "", ""); status != http.StatusNotFound {
		t.Error(status, text)
	}
}

// TestPagesArePacked: browsers that take gzip are sent gzip, and keep what has its hash in its name.
func TestPagesArePacked(t *testing.T) {
	code := strings.Repeat("let it be; ", 1000)
	_, address := alone(t, access.Local(), func(o *Options) {
		o.Pages = fstest.MapFS{"index.html": {Data: []byte(strings.Repeat("the page ", 100))}, "assets/a.js": {Data: []byte(code)}, "icon.png": {Data: []byte("picture")}}
	})
	for _, c := range []struct{ path, accepts, encoding, keeps, text string }{
		{"/assets/a.js", "br, gzip", "gzip", "public, max-age=31536000, immutable", code},
		{"/assets/a.js", "gzip;q=0", "", "public, max-age=31536000, immutable", code},
		{"/assets/a.js", "", "", "public, max-age=31536000, immutable", code},
		{"/transitions", "gzip", "gzip", "no-cache", strings.Repeat("the page ", 100)},
		{"/", "identity", "", "no-cache", strings.Repeat("the page ", 100)},
		{"/icon.png", "gzip", "", "no-cache", "picture"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Encoding", c.accepts)
		reply, err := (&http.Transport{DisableCompression: true}).RoundTrip(request)
		text := read(t, reply, err)
		if c.encoding == "gzip" {
			plain, err := gzip.NewReader(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			unpacked, err := io.ReadAll(plain)
			if err != nil {
				t.Fatal(err)
			}
			text = string(unpacked)
		}
		if h := reply.Header; h.Get("Content-Encoding") != c.encoding || h.Get("Cache-Control") != c.keeps || text != c.text {
			t.Errorf("%s for %q: %v, %d bytes", c.path, c.accepts, h, len(text))
		}
	}
}

// TestPagesOfOthers: what a browser sends for a page that is not the console's is not answered.
func TestPagesOfOthers(t *testing.T) {
	_, address := alone(t, access.Local())
	port := address[strings.LastIndex(address, ":"):]
	for _, test := range []struct {
		host, origin string
		want         int
	}{
		{"", "", 200}, {"localhost" + port, "", 200}, {"127.0.0.1" + port, "http://127.0.0.1" + port, 200}, {"[::1]" + port, "", 200},
		{"evil.example", "", 403}, {"evil.example" + port, "http://evil.example" + port, 403}, {"127.0.0.1.evil.example", "", 403},
		{"", "http://evil.example", 403}, {"", "null", 403}, {"", "http://localhost:1", 403},
	} {
		if status, text := get(t, address, "/healthz", test.host, test.origin); status != test.want {
			t.Errorf("host %q, origin %q: %d %s", test.host, test.origin, status, text)
		}
	}
	_, address = alone(t, tokensOf(t)) // a name is no secret where tokens are
	if status, text := get(t, address, "/healthz", "console.example", "https://console.example"); status != http.StatusOK {
		t.Error(status, text)
	}
}

func TestCheckListen(t *testing.T) {
	for _, test := range []struct {
		address string
		remote  bool
		method  access.Method
		wrong   string
	}{
		{"127.0.0.1:7482", false, access.ByLocal, ""}, {"localhost:0", false, access.ByLocal, ""}, {"[::1]:7482", false, access.ByToken, ""},
		{"0.0.0.0:7482", false, access.ByLocal, "--users"}, {"0.0.0.0:7482", true, access.ByLocal, "--users"}, {":7482", true, access.ByLocal, "--users"},
		{"10.0.0.1:7482", false, access.ByToken, "--allow-remote"}, {":7482", false, access.ByCluster, "--allow-remote"},
		{"10.0.0.1:7482", true, access.ByToken, ""}, {"console.example:7482", true, access.ByCluster, ""}, {"7482", true, access.ByToken, "host:port"},
	} {
		for _, encrypted := range []bool{false, true} {
			err := CheckListen(test.address, test.remote, encrypted, test.method)
			if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s, remote %v, encrypted %v, by %s: %v", test.address, test.remote, encrypted, test.method, err)
			}
			if clear := err != nil && strings.Contains(err.Error(), "in the clear"); clear && encrypted {
				t.Errorf("%s, encrypted: %v", test.address, err)
			}
		}
	}
}

// TestFiguresTakeARight: /metrics is for who may see it, and for the user of this machine where nobody is asked.
func TestFiguresTakeARight(t *testing.T) {
	_, address := alone(t, access.Local())
	if status, text := get(t, address, "/metrics", "", ""); status != http.StatusOK {
		t.Error(status, text)
	}
	_, address = alone(t, tokensOf(t))
	for token, want := range map[string]int{"": 401, "wrong": 401, "only-audit": 403, "nothing": 403, "only-metrics": 200, "only-get": 200} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		reply, err := http.DefaultClient.Do(request)
		if text := read(t, reply, err); reply.StatusCode != want || (want == 200) != strings.Contains(text, "restripe_console_audit_failures_total") {
			t.Errorf("%s: %s %s", token, reply.Status, text)
		}
	}
}

// TestOverTLS: with a certificate everything is over TLS, gRPC too, and nothing without.
func TestOverTLS(t *testing.T) {
	authority, err := pki.Create(filepath.Join(t.TempDir(), "ca"), "blue")
	if err != nil {
		t.Fatal(err)
	}
	directory := filepath.Join(t.TempDir(), "console")
	if _, err := authority.Issue(pki.Identity{Role: pki.RoleConsole, Name: "c"}, []string{"127.0.0.1"}, 0, directory); err != nil {
		t.Fatal(err)
	}
	own, err := pki.Load(directory)
	if err != nil {
		t.Fatal(err)
	}
	_, address := alone(t, tokensOf(t), func(o *Options) { o.TLS = own.Serving() })
	text, err := os.ReadFile(filepath.Join(directory, pki.AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	believing := &http.Client{Transport: transport}
	for name, options := range map[string][]connect.ClientOption{"JSON": {connect.WithProtoJSON()}, "gRPC": {connect.WithGRPC()}} {
		client := consolev1connect.NewConsoleClient(believing, "https://"+address, append(options, withToken("only-get"))...)
		if me, err := client.WhoAmI(t.Context(), &consolev1.WhoAmIRequest{}); err != nil || me.User != "only-get" {
			t.Errorf("%s: %v, %v", name, me, err)
		}
	}
	reply, err := believing.Get("https://" + address + "/healthz")
	if text := read(t, reply, err); text != "ok\n" || reply.ProtoMajor != 2 {
		t.Errorf("%s %s", reply.Proto, text)
	}
	if status, text := get(t, address, "/healthz", "", ""); status != http.StatusBadRequest {
		t.Errorf("without TLS: %d %s", status, text)
	}
	if reply, err := http.Get("https://" + address + "/healthz"); err == nil {
		t.Errorf("whoever does not believe the authority: %s", read(t, reply, err))
	}
}

package console

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/restripe/restripe/agent/access"
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
		err := CheckListen(test.address, test.remote, test.method)
		if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s, remote %v, by %s: %v", test.address, test.remote, test.method, err)
		}
	}
}

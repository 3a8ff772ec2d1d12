package gateway_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

// A page of somebody else that a browser shows on this machine steers nothing, and a name of theirs that leads here reads nothing.
func TestPagesOfOthersReachNothing(t *testing.T) {
	c := newCluster(t, 8)
	c.put("secret", noise(1000, 1), api.PutOptions{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.gateway.Serve(ctx, listener) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	address := listener.Addr().String()
	port := address[strings.LastIndex(address, ":"):]
	const json = "application/json"
	for _, test := range []struct {
		method, path, host, origin, site, kind string
		want                                   int
	}{
		{method: "GET", path: "/v1/objects/secret", want: 200},
		{method: "GET", path: "/v1/objects/secret", host: "localhost" + port, want: 200},
		{method: "GET", path: "/v1/objects/secret", host: "attacker.example", want: 403},
		{method: "GET", path: "/v1/objects/secret", host: "attacker.example" + port, origin: "http://attacker.example" + port, want: 403},
		{method: "GET", path: "/v1/objects/secret", origin: "http://attacker.example", want: 403},
		{method: "GET", path: "/metrics", host: "attacker.example", want: 403},
		{method: "DELETE", path: "/v1/objects/secret", host: "attacker.example", want: 403},
		{method: "PUT", path: "/v1/objects/secret", origin: "null", want: 403},
		{method: "PUT", path: "/v1/objects/secret", site: "cross-site", want: 403},
		{method: "POST", path: "/v1/nodes/n1/down", origin: "https://evil.example", kind: "text/plain", want: 403},
		{method: "POST", path: "/v1/nodes/n1/down", site: "cross-site", kind: "text/plain", want: 403},
		{method: "POST", path: "/v1/nodes/n1/down", kind: "text/plain", want: 400},
		{method: "POST", path: "/v1/nodes/n1/down", want: 400},
		{method: "POST", path: "/v1/sweep", kind: "application/x-www-form-urlencoded", want: 400},
		{method: "POST", path: "/v1/repair/pause", kind: json, site: "same-site", want: 403},
		{method: "POST", path: "/v1/repair/pause", kind: json + "; charset=utf-8", want: 200},
		{method: "POST", path: "/v1/repair/resume", kind: json, origin: "http://" + address, site: "same-origin", want: 200},
	} {
		request, err := http.NewRequestWithContext(t.Context(), test.method, "http://"+address+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.host != "" {
			request.Host = test.host
		}
		for name, value := range map[string]string{"Origin": test.origin, "Sec-Fetch-Site": test.site, "Content-Type": test.kind} {
			if value != "" {
				request.Header.Set(name, value)
			}
		}
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reply.Body)
		if err := errors.Join(err, reply.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if reply.StatusCode != test.want || test.want == 403 && !strings.Contains(string(text), `"code":"forbidden"`) {
			t.Errorf("%+v: %d %s", test, reply.StatusCode, text)
		}
	}
	own, err := client.New(address)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, err := own.Sweep(t.Context(), api.SweepRequest{}); err != nil {
		t.Errorf("its own client: %v", err)
	}
}

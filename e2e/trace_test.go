package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

// collector takes traces as a collector of OpenTelemetry does.
type collector struct {
	*httptest.Server
	mutex sync.Mutex
	spans map[string]seenSpan // by trace and span
}

// seenSpan is a span and the process that it is of.
type seenSpan struct {
	*tracepb.Span
	service, instance string
}

func newCollector(t *testing.T) *collector {
	c := &collector{spans: map[string]seenSpan{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data tracepb.TracesData
		if err == nil {
			err = proto.Unmarshal(body, &data)
		}
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s of %q: %v", r.URL, r.Header, err)
			return
		}
		c.mutex.Lock()
		defer c.mutex.Unlock()
		for _, resource := range data.ResourceSpans {
			about := map[string]string{}
			for _, one := range resource.Resource.Attributes {
				about[one.Key] = one.Value.GetStringValue()
			}
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					c.spans[string(span.TraceId)+string(span.SpanId)] = seenSpan{span, about["service.name"], about["service.instance.id"]}
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// paths are what was done in and below spans of that name: the names of spans and the services they are of, from the first of each
// trace on.
func (c *collector) paths(name string) (paths []string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, span := range c.spans {
		path, whole := span.Name+" at "+span.service, true
		for whole && len(span.ParentSpanId) > 0 {
			if span, whole = c.spans[string(span.TraceId)+string(span.ParentSpanId)]; whole {
				path = span.Name + " at " + span.service + " > " + path
			}
		}
		if whole && strings.Contains(path, name+" at ") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// TestTracesOfWhatIsDone: a put, a get, a transition and a repair are each one trace, over the gateway, the agents, and agents among
// themselves; without a collector nothing is traced, and one that does not answer costs nothing.
func TestTracesOfWhatIsDone(t *testing.T) {
	t.Parallel()
	collects := newCollector(t)
	stores := directories(t, 6)
	var agents []*daemon
	for i, store := range stores {
		arguments := []string{"agent", "--id", fmt.Sprintf("n%d", i+1), "--store", store, "--gateway-silence", silence}
		if i > 0 { // the first is not told
			arguments = append(arguments, "--traces", collects.URL)
		}
		agents = append(agents, serve(t, arguments...))
	}
	catalog := filepath.Join(t.TempDir(), "catalog.db")
	arguments := []string{
		"gateway", "--catalog", "sqlite:" + catalog, "--nodes", nodeFile(t, agents...), "--classes", write(t, "classes.yaml", faultClasses),
		"--listen", "127.0.0.1:0", "--grace", "0s", "--traces-share", "1", "--traces",
	}
	g := serve(t, append(arguments, collects.URL)...)
	c := clientOf(t, g.address)
	until(t, "all nodes are up", func() bool { return strings.Count(restripe(t, g.address, "status", "-o", "wide").out, " up ") >= 6 })
	data := noise(1, 400_000)
	put(t, c, "large", data, client.PutOptions{})
	put(t, c, "small", data[:100], client.PutOptions{})
	holds(t, c, "large", data)
	moving, err := c.StartTransition(t.Context(), api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(4,1)"})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the transition ends", func() bool {
		moving, err = c.Transition(t.Context(), moving.ID)
		return err == nil && moving.State.Final()
	})
	lost := strings.TrimPrefix(stores[1], "file:")
	agents[1].stop(t)
	if err := os.RemoveAll(lost); err != nil {
		t.Fatal(err)
	}
	agents[1] = serve(t, "agent", "--id", "n2", "--store", stores[1], "--gateway-silence", silence, "--traces", collects.URL,
		"--listen", agents[1].address)
	until(t, "what was lost is repaired", func() bool {
		_, err := c.Repair(t.Context())
		return err == nil && len(collects.paths("repair group")) > 0
	})
	const gateway, agent = " at restripe-gateway", " at restripe-agent"
	for root, want := range map[string][]string{
		"PUT /v1/objects/{key...}": {"stage group" + gateway + " > Write" + gateway + " > Write" + agent, "catalog update" + gateway},
		"GET /v1/objects/{key...}": {"read fragment" + gateway + " > Read" + gateway + " > Read" + agent},
		"transition group":         {"Run" + gateway + " > Run" + agent + " > run" + agent, "catalog update" + gateway},
		"repair group":             {"Run" + gateway + " > Run" + agent + " > run" + agent + " > Deliver" + agent + " > Deliver" + agent},
	} {
		for _, part := range want {
			var have []string
			until(t, root+" has "+part, func() bool {
				have = collects.paths(root)
				return slices.ContainsFunc(have, func(path string) bool { return strings.HasSuffix(path, " > "+part) })
			})
		}
	}
	collects.mutex.Lock()
	for _, span := range collects.spans {
		if span.instance == "n1" {
			t.Errorf("an agent that was not told to trace sent %s", span.Name)
		}
	}
	collects.mutex.Unlock()
	g.stop(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	g = serve(t, append(arguments, gone.URL)...)
	c = clientOf(t, g.address)
	holds(t, c, "large", data)
	holds(t, c, "small", data[:100])
	until(t, "it is logged that the collector does not answer", func() bool { return strings.Contains(g.messages(), "sending traces") })
}

package trace

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector returns the URL of one, and what it got when it is asked.
func collector(t *testing.T) (url string, got func() map[string]*tracepb.Span) {
	var mutex sync.Mutex
	spans := map[string]*tracepb.Span{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data tracepb.TracesData
		if err = errors.Join(err, proto.Unmarshal(body, &data)); err != nil {
			t.Error(err)
		}
		mutex.Lock()
		defer mutex.Unlock()
		for _, resource := range data.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					spans[span.Name] = span
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() map[string]*tracepb.Span {
		mutex.Lock()
		defer mutex.Unlock()
		return spans
	}
}

func begin(t *testing.T, url string, share float64) (stop func()) {
	t.Helper()
	stop, err := Start(t.Context(), Options{
		Collector: url, Share: share, Service: "restripe-test", Instance: "one", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

// What begins by itself is traced as the share says; what continues a trace is traced.
func TestAShareIsTracedAndWhatOthersTrace(t *testing.T) {
	for share, want := range map[float64]bool{0: false, 1: true} {
		url, got := collector(t)
		stop := begin(t, url, share)
		ctx, alone := Begin(t.Context(), "alone")
		_, part := Within(ctx, "part")
		part.End(nil)
		alone.Text("key", "value").Int("number", 7).End(errors.New("it failed"))
		_, never := Within(t.Context(), "never")
		never.End(nil)
		header := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
		ctx, continued := BeginRequest(t.Context(), header, "continued")
		mark := Mark(ctx)
		carried := Carry(context.Background(), ctx)
		_, later := Within(carried, "later")
		later.End(nil)
		continued.End(nil)
		_, answered := BeginAnswer(t.Context(), mark, "answered")
		answered.End(nil)
		for _, no := range [][]byte{nil, mark[1:], make([]byte, MarkBytes)} {
			if _, span := BeginAnswer(t.Context(), no, "never"); span != nil {
				t.Errorf("the mark %x begins a span", no)
			}
		}
		stop()
		spans := got()
		if spans["never"] != nil || (spans["alone"] != nil) != want || (spans["part"] != nil) != want {
			t.Errorf("with a share of %v traced were %v", share, spans)
		}
		if want && (spans["alone"].Status.Message != "it failed" || len(spans["alone"].Attributes) != 2 ||
			string(spans["part"].ParentSpanId) != string(spans["alone"].SpanId)) {
			t.Errorf("alone is %v, its part %v", spans["alone"], spans["part"])
		}
		first, second, third := spans["continued"], spans["later"], spans["answered"]
		if first == nil || second == nil || third == nil || string(second.ParentSpanId) != string(first.SpanId) ||
			string(third.ParentSpanId) != string(first.SpanId) || first.TraceId[0] != 0x0a || third.TraceId[0] != 0x0a {
			t.Errorf("what continues a trace is %v, %v, %v", first, second, third)
		}
		if _, after := Begin(t.Context(), "after"); after != nil {
			t.Error("something is traced after the end")
		}
	}
}

// A collector that refuses, or sends elsewhere, is logged.
func TestACollectorThatRefusesIsLogged(t *testing.T) {
	for name, answer := range map[string]http.Handler{
		"refuses":    http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no room", http.StatusServiceUnavailable) }),
		"sends away": http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect),
	} {
		server := httptest.NewServer(answer)
		var said strings.Builder
		log := slog.New(slog.NewTextHandler(&said, nil))
		stop, err := Start(t.Context(), Options{Collector: server.URL, Share: 1, Service: "s", Instance: "i", Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		_, span := Begin(t.Context(), "one")
		span.End(nil)
		stop()
		if !strings.Contains(said.String(), server.URL+"/v1/traces answers ") {
			t.Errorf("one that %s: the log says %q", name, said.String())
		}
		server.Close()
	}
}

func TestCheck(t *testing.T) {
	for collector, wrong := range map[string]string{
		"http://127.0.0.1:4318": "", "https://collector.example/otlp/": "",
		"127.0.0.1:4318": "want one such as", "ftp://127.0.0.1": "want one such as", "http://ada:secret@collector:4318": "ada:xxxxx@",
	} {
		if err := CheckCollector(collector); (wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", collector, err)
		}
	}
	for share, right := range map[float64]bool{0: true, 0.5: true, 1: true, 1.5: false, -1: false, math.NaN(): false} {
		if err := CheckShare(share); right != (err == nil) {
			t.Errorf("%v: %v", share, err)
		}
	}
}

package gateways_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/gateways"
)

// answering is a server that counts what it is asked and answers with a value, or with a status and an error of a code.
func answering(t *testing.T, value any, code api.Code) (address string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if code != "" {
			w.WriteHeader(http.StatusTeapot) // the code alone counts
			value = api.ErrorBody{Code: code, Error: "so it is"}
		}
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func pool(t *testing.T, patience time.Duration, addresses ...string) *gateways.Pool {
	t.Helper()
	p, err := gateways.NewPool(addresses, patience, gateways.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestTheNextOneIsAsked(t *testing.T) {
	unavailable, first := answering(t, nil, api.CodeUnavailable)
	serving, second := answering(t, api.Status{Cluster: "c"}, "")
	p := pool(t, gateways.Patience, "http://127.0.0.1:1", unavailable, serving)
	for range 3 {
		if status, err := p.StatusBrief(t.Context()); err != nil || status.Cluster != "c" {
			t.Fatalf("%+v, %v", status, err)
		}
	}
	if first.Load() != 1 || second.Load() != 3 {
		t.Errorf("the one that cannot serve was asked %d times, the one that can %d times", first.Load(), second.Load())
	}
}

// A refusal is an answer: nobody else is asked, and it is told as it is.
func TestARefusalIsAnAnswer(t *testing.T) {
	refusing, _ := answering(t, nil, api.CodeConflict)
	other, asked := answering(t, api.ClassInfo{}, "")
	p := pool(t, gateways.Patience, refusing, other)
	_, err := p.PutClass(t.Context(), api.ClassSpec{Name: "media"})
	if !errors.Is(err, api.ErrConflict) || !gateways.Refused(err) || asked.Load() != 0 {
		t.Errorf("%v; the other one was asked %d times", err, asked.Load())
	}
}

func TestNobodyAnswers(t *testing.T) {
	unavailable, _ := answering(t, nil, api.CodeUnavailable)
	p := pool(t, gateways.Patience, "http://127.0.0.1:1", unavailable)
	_, err := p.Classes(t.Context())
	if !errors.Is(err, client.ErrUnreachable) || !errors.Is(err, api.ErrUnavailable) || gateways.Refused(err) {
		t.Errorf("%v is not the error of both", err)
	}
	if _, err := p.Load(t.Context()); !errors.Is(err, client.ErrUnreachable) || !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("%v is not the error of both", err)
	}
	if _, err := gateways.NewPool(nil, gateways.Patience, gateways.Credentials{}); err == nil {
		t.Error("a pool of no gateways")
	}
}

// A gateway that hangs is passed over; the caller's own end is the caller's.
func TestPatience(t *testing.T) {
	t.Parallel()
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hanging.Close)
	serving, _ := answering(t, []api.ClassInfo{}, "")
	if _, err := pool(t, 50*time.Millisecond, hanging.URL).Classes(t.Context()); !errors.Is(err, client.ErrUnreachable) ||
		errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that hangs: %v", err)
	}
	if _, err := pool(t, 5*time.Second, hanging.URL, serving).Classes(t.Context()); err != nil {
		t.Errorf("one that hangs before one that serves: %v", err)
	}
	leaving, leave := context.WithCancel(t.Context())
	leave()
	if _, err := pool(t, gateways.Patience, hanging.URL, serving).Classes(leaving); !errors.Is(err, context.Canceled) {
		t.Errorf("who left was told %v", err)
	}
}

func TestLoadIsOfAll(t *testing.T) {
	busy, _ := answering(t, api.Load{WindowSeconds: 10, Requests: 70, P50Seconds: 0.1, P99Seconds: 0.2, TransitionBytesPerSecond: 5}, "")
	calm, _ := answering(t, api.Load{WindowSeconds: 10, Requests: 30, P50Seconds: 0.01, P99Seconds: 0.9, TransitionBytesPerSecond: 7}, "")
	load, err := pool(t, gateways.Patience, busy, "http://127.0.0.1:1", calm).Load(t.Context())
	want := api.Load{WindowSeconds: 10, Requests: 100, P50Seconds: 0.1, P99Seconds: 0.9, TransitionBytesPerSecond: 12}
	if err != nil || load != want {
		t.Errorf("%+v, %v", load, err)
	}
}

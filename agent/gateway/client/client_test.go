package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server of the routes and returns its client.
func serve(t *testing.T, routes map[string]http.HandlerFunc) *Client {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, handler := range routes {
		mux.HandleFunc(pattern, handler)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c, err := New(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestAnyKeyArrivesAsItWas(t *testing.T) {
	var seen string
	c := serve(t, map[string]http.HandlerFunc{
		"DELETE /v1/objects/{key...}": func(w http.ResponseWriter, r *http.Request) { seen = r.PathValue("key") },
		"/":                           func(w http.ResponseWriter, r *http.Request) { seen = "elsewhere: " + r.URL.Path },
	})
	check := func(key string) error {
		if err := c.Delete(context.Background(), key); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		if seen != key {
			return fmt.Errorf("sent %q, arrived %q", key, seen)
		}
		return nil
	}
	for _, key := range []string{".", "..", "a/../b", "/", "//a//", "a b", "100%", "%2F", "ä\xff\x00", "?x=1#y", "..."} {
		if err := check(key); err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		return
	}
	rapid.Check(t, func(r *rapid.T) {
		if err := check(string(rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(r, "key"))); err != nil {
			r.Fatal(err)
		}
	})
}

func TestRefusalsKeepTheirClass(t *testing.T) {
	cases := []struct {
		status int
		code   api.Code
		class  error
	}{
		{404, "not_found", api.ErrNotFound}, {412, "conflict", api.ErrConflict}, {400, "bad_request", api.ErrBadRequest},
		{503, "too_few_nodes", api.ErrTooFewNodes}, {503, "unavailable", api.ErrUnavailable}, {500, "data_loss", api.ErrDataLoss},
		{500, "unknown_outcome", api.ErrUnknownOutcome}, {507, "full", api.ErrFull},
	}
	for _, want := range cases {
		c := serve(t, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(want.status)
			if err := json.NewEncoder(w).Encode(api.ErrorBody{Error: "what, where, cure", Code: want.code}); err != nil {
				t.Error(err)
			}
		}})
		_, err := c.Stat(t.Context(), "k")
		var refused *Error
		if !errors.Is(err, want.class) || !errors.As(err, &refused) || refused.Status != want.status || err.Error() != "what, where, cure" {
			t.Errorf("%s: have %v", want.code, err)
		}
		for _, other := range cases {
			if other.code != want.code && errors.Is(err, other.class) {
				t.Errorf("%s is also %v", want.code, other.class)
			}
		}
	}
}

func TestRefusalWithoutABody(t *testing.T) {
	c := serve(t, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }})
	if _, err := c.Stat(t.Context(), "k"); !errors.Is(err, api.ErrNotFound) {
		t.Error(err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.URL
	server.Close()
	c, err := New(address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), address) {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Status(cancelled); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
		t.Errorf("a cancelled call: %v", err)
	}
	for _, address := range []string{"", "ftp://x", "http://", "http://%zz"} {
		if _, err := New(address); err == nil {
			t.Errorf("address %q was accepted", address)
		}
	}
}

func TestPutSendsItsConditions(t *testing.T) {
	stamp := block.Stamp{Sequence: 7, Salt: 9}
	var got *http.Request
	var body string
	c := serve(t, map[string]http.HandlerFunc{"PUT /v1/objects/{key}": func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got, body = r, string(text)
		if err := json.NewEncoder(w).Encode(api.Object{Key: "k", Revision: stamp}); err != nil {
			t.Error(err)
		}
	}})
	object, err := c.Put(t.Context(), "k", strings.NewReader("bytes"), PutOptions{Class: "c", Scheme: "rs(4,2)", Size: 5, SizeKnown: true, IfRevision: &stamp})
	if err != nil || object.Revision != stamp {
		t.Fatal(object, err)
	}
	if body != "bytes" || got.ContentLength != 5 || got.URL.Query().Get("class") != "c" || got.URL.Query().Get("scheme") != "rs(4,2)" ||
		got.Header.Get("If-Match") != `"`+stamp.String()+`"` || got.Header.Get("If-None-Match") != "" {
		t.Errorf("sent %q with %v %v", body, got.URL, got.Header)
	}
	if _, err := c.Put(t.Context(), "k", strings.NewReader("stream"), PutOptions{IfAbsent: true}); err != nil {
		t.Fatal(err)
	}
	if body != "stream" || got.ContentLength != -1 || got.Header.Get("If-None-Match") != "*" {
		t.Errorf("sent %q with %v", body, got.Header)
	}
	if _, err := c.Put(t.Context(), "k", strings.NewReader(""), PutOptions{SizeKnown: true}); err != nil || got.ContentLength != 0 {
		t.Errorf("an empty object: %v, length %d", err, got.ContentLength)
	}
}

func TestGetNeverEndsEarlyInSilence(t *testing.T) {
	stamp := block.Stamp{Sequence: 1}
	c := serve(t, map[string]http.HandlerFunc{"GET /v1/objects/{key}": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"`+stamp.String()+`"`)
		w.Header().Set("Content-Length", "10")
		if r.PathValue("key") == "ignores-ranges" {
			w.Header().Set("Content-Length", "0")
			return
		}
		if _, err := io.WriteString(w, "12345"); err != nil {
			t.Error(err)
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}})
	content, err := c.Get(t.Context(), "k", Range{})
	if err != nil {
		t.Fatal(err)
	}
	if content.Revision != stamp || content.Length != 10 {
		t.Errorf("revision %v, length %d", content.Revision, content.Length)
	}
	if text, err := io.ReadAll(content); err == nil {
		t.Errorf("a broken stream read as %q", text)
	}
	if err := content.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), "ignores-ranges", Range{Offset: 5}); err == nil {
		t.Error("a whole object was taken for a range")
	}
}

// A page of two may be the last although it is full, and an empty one may be it: older gateways end so.
func TestObjectsWalksAllPages(t *testing.T) {
	for _, keys := range [][]string{{"a", "b\xff", "c", "d", "e"}, {"a", "b", "c", "d"}, {}} {
		asked := 0
		c := serve(t, map[string]http.HandlerFunc{"GET /v1/objects": func(w http.ResponseWriter, r *http.Request) {
			asked++
			after, err := api.DecodeKey(r.URL.Query().Get("after64"))
			if err != nil {
				t.Error(err)
			}
			var page api.ObjectList
			for _, key := range keys {
				if key > after && len(page.Objects) < 2 {
					page.Objects = append(page.Objects, api.Object{Key64: api.EncodeKey(key)})
					page.Next = api.EncodeKey(key)
				}
			}
			if len(page.Objects) < 2 {
				page.Next = ""
			}
			if err := json.NewEncoder(w).Encode(page); err != nil {
				t.Error(err)
			}
		}})
		var seen []string
		for object, err := range c.Objects(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			key, err := api.DecodeKey(object.Key64)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, key)
		}
		if strings.Join(seen, " ") != strings.Join(keys, " ") || asked != len(keys)/2+1 {
			t.Errorf("saw %q on %d pages, want %q", seen, asked, keys)
		}
	}
}

func TestWatchTellsAnEndFromABreak(t *testing.T) {
	stream := func(states ...api.TransitionState) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for _, state := range states {
				if err := json.NewEncoder(w).Encode(api.Transition{ID: "t", State: state}); err != nil {
					t.Error(err)
				}
			}
		}
	}
	c := serve(t, map[string]http.HandlerFunc{
		"GET /v1/transitions/ends":   stream(api.TransitionRunning, api.TransitionDone),
		"GET /v1/transitions/pauses": stream(api.TransitionRunning, api.TransitionPaused),
		"GET /v1/transitions/breaks": stream(api.TransitionRunning),
	})
	for id, ends := range map[string]bool{"ends": true, "pauses": true, "breaks": false} {
		visits := 0
		_, err := c.Watch(t.Context(), id, func(api.Transition) error { visits++; return nil })
		if (err == nil) != ends || visits == 0 {
			t.Errorf("%s: %d visits, error %v", id, visits, err)
		}
	}
	enough := errors.New("enough")
	if _, err := c.Watch(t.Context(), "ends", func(api.Transition) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
}

// Whoever may name a gateway's address to a server of the cluster does not have it ask others, nor fill its memory.
func TestWhatIsNoGatewayIsNotFollowed(t *testing.T) {
	var asked atomic.Int64
	c := serve(t, map[string]http.HandlerFunc{
		"GET /v1/status": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"/elsewhere": func(http.ResponseWriter, *http.Request) { asked.Add(1) },
		"GET /v1/doctor": func(w http.ResponseWriter, _ *http.Request) {
			part := strings.Repeat(`{"text":"`+strings.Repeat("x", 1<<20)+`"},`, 4)
			for _, err := io.WriteString(w, "["); err == nil; _, err = io.WriteString(w, part) {
				asked.Add(1)
			}
		},
	})
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "307") || asked.Load() > 0 {
		t.Errorf("%v, and %d requests went elsewhere", err, asked.Load())
	}
	if _, err := c.Doctor(t.Context()); err == nil || !strings.Contains(err.Error(), "is 127.0.0.1") || asked.Load() > 100 {
		t.Errorf("an endless reply: %v, after %d parts", err, asked.Load())
	}
}

// A client of several gateways goes on at the next one: with everything where one cannot be reached, and with what changes nothing where
// one breaks off or cannot answer. It stays where it was answered.
func TestAnotherGatewayAnswers(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	var asked atomic.Int32    // the good one
	var names [2]atomic.Value // of requests, at the bad one and the good one
	var first atomic.Pointer[http.HandlerFunc]
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names[0].Store(r.Header.Get("Idempotency-Key"))
		(*first.Load())(w, r)
	}))
	defer broken.Close()
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		names[1].Store(r.Header.Get("Idempotency-Key"))
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method == http.MethodPut && string(body) != "hello" {
			t.Errorf("the body is %q: %v", body, err)
		}
		w.Header().Set("ETag", `"0000000000000001.0000000000000001"`)
		if _, err := io.WriteString(w, "{}"); err != nil {
			t.Error(err)
		}
	}))
	defer good.Close()
	get := func(c *Client) error {
		content, err := c.Get(t.Context(), "k", Range{})
		if err == nil {
			err = content.Close()
		}
		return err
	}
	put := func(c *Client) error {
		_, err := c.Put(t.Context(), "k", io.MultiReader(strings.NewReader("hello")), PutOptions{}) // which is read once
		return err
	}
	putAgain := func(c *Client) error {
		_, err := c.Put(t.Context(), "k", strings.NewReader("hello"), PutOptions{})
		return err
	}
	of := func(servers ...*httptest.Server) *Client {
		t.Helper()
		var addresses []string
		for _, s := range servers {
			addresses = append(addresses, s.URL)
		}
		c, err := New(strings.Join(addresses, ", "))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	c := of(gone, good)
	if err := errors.Join(put(c), get(c)); err != nil || c.Address() != good.URL {
		t.Errorf("%v, at %s", err, c.Address())
	}
	breaksOff := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	cannot := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	for _, c := range []struct {
		what  string
		first http.HandlerFunc
		is    error
	}{{"breaks off", breaksOff, ErrUnreachable}, {"cannot answer", cannot, api.ErrUnavailable}} {
		first.Store(&c.first)
		asked.Store(0)
		if err := put(of(broken, good)); !errors.Is(err, c.is) || asked.Load() > 0 {
			t.Errorf("a put where the first one %s: %v, and the other was asked %d times", c.what, err, asked.Load())
		}
		if err := putAgain(of(broken, good)); err != nil || asked.Load() != 1 || names[0].Load() == "" || names[0].Load() != names[1].Load() {
			t.Errorf("a put of what can be read again where the first one %s: %v, and the other was asked %d times, for %v and %v",
				c.what, err, asked.Load(), names[0].Load(), names[1].Load())
		}
		asked.Store(0)
		if err := get(of(broken, good)); err != nil || asked.Load() != 1 {
			t.Errorf("a get where the first one %s: %v, and the other was asked %d times", c.what, err, asked.Load())
		}
	}
	if err := get(of(gone, gone)); !errors.Is(err, ErrUnreachable) {
		t.Errorf("nobody is there: %v", err)
	}
	if _, err := New("127.0.0.1:1,"); err == nil {
		t.Error("an address is empty")
	}
}

// A gateway that refuses a put before it has read it all leaves the body to the next one from its beginning on, and to that one alone.
func TestABodyIsReadByOneGatewayAtATime(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		if _, err := io.WriteString(w, `{"error":{"code":"unavailable","message":"not now"}}`); err != nil {
			t.Error(err)
		}
	}))
	defer busy.Close()
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Equal(body, data) {
			t.Errorf("%d bytes came of %d, or others: %v", len(body), len(data), err)
		}
		if _, err := io.WriteString(w, "{}"); err != nil {
			t.Error(err)
		}
	}))
	defer good.Close()
	for range 10 {
		c, err := New(busy.URL + "," + good.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Put(t.Context(), "k", bytes.NewReader(data), PutOptions{}); err != nil {
			t.Error(err)
		}
		c.Close()
	}
}

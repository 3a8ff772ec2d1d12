package gateway_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

func newRequest() api.Request {
	return api.NewRequest(time.Now(), func(b []byte) { _, _ = rand.Read(b) })
}

// asks sends a request over HTTP, under a name, and returns the status and the body of the answer.
func asks(t *testing.T, base, method, path, name string, body []byte) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if name != "" {
		r.Header.Set("Idempotency-Key", name)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reply.Body)
	if err = errors.Join(err, reply.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

// A change that is asked for twice under one name is made once, and answered twice alike, whatever happened between, at any gateway.
func TestAChangeIsMadeOnce(t *testing.T) {
	c := newCluster(t, 9)
	other := c.newGateway("gw2")
	servers := []*httptest.Server{httptest.NewServer(c.gateway.Handler()), httptest.NewServer(other.Handler())}
	for _, server := range servers {
		defer server.Close()
	}
	for _, size := range []int{0, 700, 150_000} {
		path := fmt.Sprintf("/v1/objects/k%d", size)
		key := fmt.Sprintf("k%d", size)
		put, update, remove := newRequest().String(), newRequest().String(), newRequest().String()

		status, first := asks(t, servers[0].URL, "PUT", path, put, noise(size, 1))
		if status != http.StatusOK {
			t.Fatal(status, first)
		}
		c.put(key, noise(size, 2), api.PutOptions{})
		if status, again := asks(t, servers[1].URL, "PUT", path, put, noise(size, 1)); status != http.StatusOK || again != first {
			t.Errorf("%d bytes: asked again the answer is %d, %s, and was %s", size, status, again, first)
		}
		c.check(key, noise(size, 2))
		if status, text := asks(t, servers[1].URL, "PUT", path+"x", put, nil); status != http.StatusBadRequest {
			t.Errorf("a name is used for two objects: %d, %s", status, text)
		}
		for _, other := range []string{path, path + "x"} {
			if status, text := asks(t, servers[1].URL, "DELETE", other, put, nil); status != http.StatusBadRequest {
				t.Errorf("a delete of %s has the name of a put: %d, %s", other, status, text)
			}
		}

		if size > 0 {
			change := noise(10, 3)
			status, first = asks(t, servers[0].URL, "PATCH", path+"?offset=5", update, change)
			if status != http.StatusOK {
				t.Fatal(status, first)
			}
			c.put(key, noise(size, 4), api.PutOptions{})
			if status, again := asks(t, servers[1].URL, "PATCH", path+"?offset=5", update, change); status != http.StatusOK || again != first {
				t.Errorf("%d bytes: asked again the answer is %d, %s, and was %s", size, status, again, first)
			}
			c.check(key, noise(size, 4))
		}

		if status, text := asks(t, servers[0].URL, "DELETE", path, remove, nil); status != http.StatusNoContent {
			t.Fatal(status, text)
		}
		c.put(key, noise(size, 5), api.PutOptions{})
		if status, text := asks(t, servers[1].URL, "DELETE", path, remove, nil); status != http.StatusNoContent {
			t.Errorf("asked again the answer is %d, %s", status, text)
		}
		for _, method := range []string{"PUT", "DELETE"} {
			if status, text := asks(t, servers[1].URL, method, path+"x", remove, nil); status != http.StatusBadRequest {
				t.Errorf("%s of another object has the name of a delete: %d, %s", method, status, text)
			}
		}
		if status, text := asks(t, servers[1].URL, "PUT", path, remove, nil); status != http.StatusBadRequest {
			t.Errorf("a put has the name of a delete: %d, %s", status, text)
		}
		c.check(key, noise(size, 5))
	}
	if _, err := c.gateway.SweepRecords(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.audit()
}

// Changes that are asked for several times at once are made once, and all who ask are told the same.
func TestAChangeIsMadeOnceAtOnce(t *testing.T) {
	c := newCluster(t, 9)
	for round, size := range []int{700, 150_000, 700, 150_000} {
		key, request := fmt.Sprint("k", round), newRequest()
		answers := make([]api.Object, 6)
		var work sync.WaitGroup
		for i := range answers {
			work.Go(func() {
				options := api.PutOptions{Size: int64(size), Request: request}
				var err error
				if answers[i], err = c.gateway.Put(t.Context(), key, bytes.NewReader(noise(size, 1)), options); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		for _, answer := range answers {
			if answer.Revision != answers[0].Revision || answer.Revision == (block.Stamp{}) {
				t.Errorf("%s was put at revision %s and at %s", key, answers[0].Revision, answer.Revision)
			}
		}
		if is := c.stat(key).Revision; is != answers[0].Revision {
			t.Errorf("%s is at revision %s, and its puts were answered with %s", key, is, answers[0].Revision)
		}
	}
	c.audit()
}

func TestNamesOfRequests(t *testing.T) {
	now := time.Now()
	request := newRequest()
	if got, err := api.ParseRequest(request.String(), now); err != nil || got != request {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := api.ParseRequest("", now); err != nil || !got.IsZero() {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"once": "UUID of version 7", "7f1ae4c2-5f25-4f6e-9a51-0c9a3f9c1a11": "UUID of version 7", request.String() + "0": "UUID",
		strings.ReplaceAll(request.String(), "-", ""): "UUID", "01890a5d-ac96-774b-bcce-b302099a8057": "set the clocks",
	} {
		if _, err := api.ParseRequest(text, now); !errors.Is(err, api.ErrBadRequest) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

// What an acknowledgement says: its revision names the bytes it acknowledges, and what cannot be found out is no failure.

// Puts of one key that arrive together all are acknowledged, each under a revision of its own, whose bytes are what a reader
// that is told this revision gets and what a client that demands it finds.
func TestARevisionNamesOneContent(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	server := httptest.NewServer(c.gateway.Handler())
	defer server.Close()
	call := func(method, path string, body []byte, header http.Header) (int, http.Header, []byte) {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, nil, nil
		}
		request.Header = header
		reply, err := server.Client().Do(request)
		if err != nil {
			t.Error(err)
			return 0, nil, nil
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Error(err)
		}
		return reply.StatusCode, reply.Header, text
	}
	const puts, others = 12, 20
	var mutex sync.Mutex
	acknowledged := map[string][]byte{} // by revision
	var clients sync.WaitGroup
	for i := range puts {
		data := noise(100+i, uint64(i))
		clients.Go(func() {
			status, _, text := call(http.MethodPut, "/v1/objects/k", data, nil)
			var object api.Object
			if err := json.Unmarshal(text, &object); err != nil || status != http.StatusOK || object.Size != int64(len(data)) {
				t.Errorf("put %d of %d bytes: %d %s, %v", i, len(data), status, text, err)
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			if _, twice := acknowledged[object.Revision.String()]; twice {
				t.Errorf("revision %s was acknowledged for two contents", object.Revision)
			}
			acknowledged[object.Revision.String()] = data
		})
	}
	for i := range others { // keys apart still share batches
		clients.Go(func() {
			status, _, text := call(http.MethodPut, fmt.Sprint("/v1/objects/other", i), noise(50, uint64(i)), nil)
			if status != http.StatusOK {
				t.Errorf("other %d: %d %s", i, status, text)
			}
		})
	}
	clients.Wait()
	status, header, stored := call(http.MethodGet, "/v1/objects/k", nil, nil)
	now, err := strconv.Unquote(header.Get("ETag"))
	if err != nil || status != http.StatusOK || !bytes.Equal(stored, acknowledged[now]) {
		t.Fatalf("status %d, revision %q: %d bytes that differ from the %d acknowledged under it",
			status, header.Get("ETag"), len(stored), len(acknowledged[now]))
	}
	for revision := range acknowledged {
		if revision == now {
			continue
		}
		status, _, text := call(http.MethodPut, "/v1/objects/k", []byte("x"), http.Header{"If-Match": {strconv.Quote(revision)}})
		if status != http.StatusPreconditionFailed {
			t.Errorf("If-Match of a revision that was overwritten: %d %s", status, text)
		}
	}
	status, _, text := call(http.MethodPut, "/v1/objects/k", []byte("x"), http.Header{"If-None-Match": {"*"}})
	if status != http.StatusPreconditionFailed {
		t.Errorf("If-None-Match of a key that is there: %d %s", status, text)
	}
	status, _, text = call(http.MethodPut, "/v1/objects/k", []byte("y"), http.Header{"If-Match": {strconv.Quote(now)}})
	if status != http.StatusOK {
		t.Errorf("If-Match of the revision that is there: %d %s", status, text)
	}
	c.check("k", []byte("y"))
	groups := map[block.GroupID]bool{}
	for i := range others {
		groups[c.stat(fmt.Sprint("other", i)).Groups[0].ID] = true
	}
	if len(groups) == others {
		t.Errorf("each of %d small objects has a group of its own", others)
	}
	c.audit()
}

// A write whose condition did not hold, and which could not be settled after that, is not reported as refused.
func TestARefusedWriteThatCannotBeSettledIsUnknown(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.put("k", noise(100, 1), api.PutOptions{})
	engine := &hooked{Engine: c.engine}
	g := c.newGateway("other", c.over(engine))
	server := httptest.NewServer(g.Handler())
	defer server.Close()
	remote, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	refused := false
	engine.hook(func(keys []string) error {
		for _, key := range keys {
			refused = refused || key == "o/k"
		}
		if refused && strings.HasPrefix(keys[0], "i/") && len(keys) == 2 { // the state of the attempt alone: to settle it
			return kv.ErrClosed // which is not asked again
		}
		return nil
	}, nil)
	defer engine.hook(nil, nil)
	_, err = remote.Put(t.Context(), "k", bytes.NewReader(noise(100, 2)), client.PutOptions{Size: 100, IfRevision: &block.Stamp{}})
	if !errors.Is(err, api.ErrUnknownOutcome) || errors.Is(err, api.ErrConflict) {
		t.Errorf("the client is told %v", err)
	}
}

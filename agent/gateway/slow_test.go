package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// trickle is a body that brings some bytes and then nothing, until it is let go.
type trickle struct {
	first io.Reader
	dry   chan struct{} // closed when the first bytes have gone
	goOn  chan struct{}
	once  sync.Once
	rest  io.Reader
}

func newTrickle(data []byte, first int) *trickle {
	return &trickle{
		first: bytes.NewReader(data[:first]), rest: bytes.NewReader(data[first:]), dry: make(chan struct{}), goOn: make(chan struct{}),
	}
}

// Read brings what has come.
func (b *trickle) Read(into []byte) (int, error) {
	if n, err := b.first.Read(into); err == nil {
		return n, nil
	}
	b.once.Do(func() { close(b.dry) })
	<-b.goOn
	return b.rest.Read(into)
}

// Clients that announce large objects and updates, and bring next to nothing of them, cost others nothing.
func TestUploadsThatDoNotComeHoldNoMemory(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	g := c.newGateway("small", roomForOneGroup)
	data := noise(64<<10, 1)
	c.put("updated", data, api.PutOptions{})
	type slow struct {
		body  *trickle
		ended chan error
	}
	var clients []slow
	begin := func(send func(body io.Reader) error) {
		client := slow{newTrickle(data, 100), make(chan error, 1)}
		clients = append(clients, client)
		go func() { client.ended <- send(client.body) }()
	}
	for i := range 8 {
		begin(func(body io.Reader) error {
			_, err := g.Put(t.Context(), fmt.Sprint("slow", i), body, api.PutOptions{Size: int64(len(data))})
			return err
		})
		begin(func(body io.Reader) error {
			_, err := g.UpdateFrom(t.Context(), "updated", 0, body, int64(len(data)), nil, api.Request{})
			return err
		})
	}
	for _, client := range clients {
		<-client.body.dry
	}
	if err := putWithin(t, g, "k", bytes.NewReader(data), int64(len(data))); err != nil {
		t.Errorf("a put of a group beside them: %v", err)
	}
	if _, err := g.UpdateFrom(t.Context(), "k", 0, strings.NewReader("hello"), 5, nil, api.Request{}); err != nil {
		t.Errorf("an update beside them: %v", err)
	}
	for _, client := range clients { // one after the other, so that none waits for others
		close(client.body.goOn)
		if err := <-client.ended; err != nil {
			t.Errorf("a slow client: %v", err)
		}
	}
	c.check("updated", data)
	c.check("slow0", data)
}

// Clients that stop in the middle of a group keep what they have sent and no memory: it is staged as a smaller group.
func TestUploadsThatStopInAGroupHoldNoMemory(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int64{"known size": 190_000, "unknown size": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 9)
			g := c.newGateway("small", roomForOneGroup)
			data := noise(190_000, 1)
			var bodies []*trickle
			var slow sync.WaitGroup
			for i := range 4 {
				body := newTrickle(data, 30_000+1000*i)
				bodies = append(bodies, body)
				slow.Go(func() {
					if _, err := g.Put(t.Context(), fmt.Sprint("slow", i), body, api.PutOptions{Size: size}); err != nil {
						t.Errorf("a client that stopped for a while: %v", err)
					}
				})
			}
			for _, body := range bodies {
				<-body.dry
			}
			for i := range 3 {
				if err := putWithin(t, g, fmt.Sprint("k", i), bytes.NewReader(data), int64(len(data))); err != nil {
					t.Errorf("a put beside them: %v", err)
				}
			}
			for _, body := range bodies {
				close(body.goOn)
			}
			slow.Wait()
			for i := range bodies {
				key := fmt.Sprint("slow", i)
				c.check(key, data)
				if object, err := g.Stat(t.Context(), key); err != nil || len(object.Groups) <= 3 {
					t.Errorf("%s lies in %d groups, want more than 3: %v", key, len(object.Groups), err)
				}
			}
			c.check("k1", data)
			c.audit()
		})
	}
}

// A small object whose client leaves before its batch is on its way is not stored, and the client learns that.
func TestASmallObjectIsTakenBackWithItsClient(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	_, g := c.makeGateway("waiting", func(o *gateway.Options) {
		o.Classes = slices.Clone(o.Classes)
		o.Classes[0].PackMode, o.Classes[0].PackDelay = api.PackBatch, api.MaxPackDelay
	})
	leaving, leave := context.WithCancel(t.Context())
	body := newTrickle([]byte("gone"), 4)
	close(body.goOn)
	ended := make(chan error, 1)
	go func() {
		_, err := g.Put(leaving, "leaves", body, api.PutOptions{Size: -1})
		ended <- err
	}()
	select {
	case <-body.dry:
		leave()
	case err := <-ended:
		t.Fatalf("the put ended before its client left: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, api.ErrUnknownOutcome) {
		t.Errorf("a put whose client left: %v", err)
	}
	if err := g.Close(); err != nil { // after which batches are on their way
		t.Fatal(err)
	}
	if _, err := c.gateway.Open(t.Context(), "leaves"); !errors.Is(err, catalog.ErrNoObject) {
		t.Errorf("a put whose client left: %v, want that there is no object", err)
	}
	c.audit()
}

// What finds no room is refused, and told when to come again.
func TestRequestsBeyondTheMemoryAreToldToComeAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	g := c.newGateway("small", roomForOneGroup)
	server := httptest.NewServer(g.Handler())
	defer server.Close()
	release, held := g.HoldSmall()
	if !held {
		t.Fatal("something holds memory of small objects")
	}
	defer release()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+"/v1/objects/k", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	again := reply.Header.Get("Retry-After")
	if err != nil || reply.StatusCode != http.StatusServiceUnavailable || again == "" || !strings.Contains(string(text), `"busy"`) {
		t.Errorf("%s, Retry-After %q, %s, %v", reply.Status, again, text, err)
	}
}

// dawdler is a client that takes nothing until it is let go.
type dawdler struct {
	bytes.Buffer
	begun chan struct{}
	once  sync.Once
	goOn  chan struct{}
}

// Write waits.
func (d *dawdler) Write(data []byte) (int, error) {
	d.once.Do(func() { close(d.begun) })
	<-d.goOn
	return d.Buffer.Write(data)
}

// Clients that do not take what they read hold no memory that others need, and get every byte when they go on.
func TestSlowReadersDoNotStopOthers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	g := c.newGateway("small", roomForOneGroup)
	data := noise(64<<10*10, 1)
	c.put("k", data, api.PutOptions{})
	read := func(into io.Writer) error {
		reader, err := g.Open(t.Context(), "k")
		if err != nil {
			return err
		}
		return reader.WriteTo(t.Context(), into, 0, reader.Size())
	}
	var readers sync.WaitGroup
	var slow []*dawdler
	goOn := make(chan struct{})
	for range 20 {
		dawdling := &dawdler{begun: make(chan struct{}), goOn: goOn}
		slow = append(slow, dawdling)
		readers.Go(func() {
			if err := read(dawdling); err != nil {
				t.Errorf("a slow reader: %v", err)
			}
		})
	}
	for _, dawdling := range slow { // the last of them have memory that the first had
		<-dawdling.begun
	}
	for range 3 {
		var got bytes.Buffer
		if err := read(&got); err != nil || !bytes.Equal(got.Bytes(), data) {
			t.Errorf("a read beside slow ones: %d bytes, %v", got.Len(), err)
		}
	}
	close(goOn)
	readers.Wait()
	for i, dawdling := range slow {
		if !bytes.Equal(dawdling.Bytes(), data) {
			t.Errorf("slow reader %d got %d bytes that are not the object", i, dawdling.Len())
		}
	}
}

package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/gateway/values"
)

// An object is gone once its time has come, for everybody who asks, and its key is free; then it is removed.
func TestAnObjectExpires(t *testing.T) {
	c := newCluster(t, 8)
	server := httptest.NewServer(c.gateway.Handler())
	defer server.Close()
	remote, err := client.New(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	metadata := map[string]string{"content-type": "text/plain; charset=utf-8", "by": "ada & söhne\n", "sum": "a+b c%"}
	late := time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()
	for _, key := range []string{"small", "large", "later"} {
		options := client.PutOptions{Expires: time.Now().Add(300 * time.Millisecond), Metadata: metadata}
		if key == "later" {
			options.Expires = late
		}
		size := map[string]int{"small": 100, "large": 300_000, "later": 50}[key]
		if _, err := remote.Put(t.Context(), key, bytes.NewReader(noise(size, 1)), options); err != nil {
			t.Fatal(err)
		}
	}
	stat, err := remote.Stat(t.Context(), "later")
	if err != nil || !stat.Expires.Equal(late) || stat.Metadata["by"] != metadata["by"] {
		t.Errorf("%+v, %v", stat.Object, err)
	}
	answer, err := http.Get(server.URL + "/v1/objects/later")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	at, err := time.Parse(time.RFC3339Nano, answer.Header.Get("Restripe-Expires"))
	if err != nil || !at.Equal(late) || !maps.Equal(api.MetadataIn(answer.Header), metadata) {
		t.Errorf("%v, %v", answer.Header, err)
	}
	c.await("objects to expire", func() bool {
		found, err := c.gateway.Find(t.Context(), "large")
		return err == nil && found == nil
	})
	c.await("the other to expire", func() bool {
		_, err := c.read("small")
		return errors.Is(err, catalog.ErrNoObject)
	})
	for what, act := range map[string]func() error{
		"stat":   func() error { _, err := c.gateway.Stat(t.Context(), "large"); return err },
		"update": func() error { _, err := c.gateway.Update(t.Context(), "large", 0, []byte("x"), nil); return err },
		"delete": func() error { return c.gateway.Delete(t.Context(), "large", nil) },
	} {
		if err := act(); !errors.Is(err, catalog.ErrNoObject) {
			t.Errorf("%s of an object that has expired: %v", what, err)
		}
	}
	list, err := c.gateway.List(t.Context(), "", "", 2)
	if err != nil || len(list.Objects) != 1 || list.Objects[0].Key != "later" || list.Next != "" {
		t.Errorf("%+v, %v", list, err)
	}
	c.put("small", noise(200, 2), api.PutOptions{IfRevision: &block.Stamp{}})
	result, err := c.gateway.SweepRecords(t.Context())
	if err != nil || result.ObjectsExpired != 1 {
		t.Errorf("%+v, %v", result, err)
	}
	c.check("small", noise(200, 2))
	c.check("later", noise(50, 1))
	c.audit()
}

// A value that nobody has encoded is taken as it is.
func TestMetadataAsPeopleSendIt(t *testing.T) {
	for _, value := range []string{"a+b", "100 %", "text/plain; charset=utf-8"} {
		if got := api.MetadataIn(http.Header{"Restripe-Meta-It": {value}}); got["it"] != value {
			t.Errorf("%q is taken for %q", value, got["it"])
		}
	}
}

// What cannot be kept is refused, with what can be done.
func TestMetadataThatIsRefused(t *testing.T) {
	c := newCluster(t, 8)
	for _, metadata := range []map[string]string{{"a": strings.Repeat("b", api.MaxMetadataBytes)}, {"": "a"}, {"a": "\xff"}} {
		_, err := c.gateway.Put(t.Context(), "k", strings.NewReader("v"), api.PutOptions{Size: 1, Metadata: metadata})
		if !errors.Is(err, api.ErrBadRequest) {
			t.Errorf("%.20v: %v", metadata, err)
		}
	}
	for _, expires := range []string{"soon", "-1h", "0s", "1969-01-01T00:00:00Z"} {
		if _, err := api.ParseExpires(expires, time.Now()); !errors.Is(err, api.ErrBadRequest) {
			t.Errorf("%s: %v", expires, err)
		}
	}
}

func mustValue(t *testing.T, keys values.Keyspace, key string) string {
	t.Helper()
	value, err := keys.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	defer value.Release()
	if value == nil {
		return "<none>"
	}
	return string(value.Data)
}

func setValue(t *testing.T, keys values.Keyspace, key, text string) {
	t.Helper()
	if _, err := keys.Put(t.Context(), key, values.Put{Data: []byte(text)}); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
}

// Everybody who adds to a number at two gateways has added to it.
func TestChangesOfOneValue(t *testing.T) {
	c := newCluster(t, 8)
	gateways := []*gateway.Gateway{c.gateway, c.newGateway("second")}
	const each, clients = 10, 6
	var adding sync.WaitGroup
	for i := range clients {
		session := gateways[i%2].Values().Anybody()
		adding.Go(func() {
			for range each {
				_, err := session.Modify(t.Context(), "number", func(now *values.Value) (values.Change, error) {
					number := 0
					if now != nil {
						number, _ = strconv.Atoi(string(now.Data))
					}
					return values.Change{Put: &values.Put{Data: strconv.AppendInt(nil, int64(number+1), 10)}}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	adding.Wait()
	session := c.gateway.Values().Anybody()
	if got := mustValue(t, session, "number"); got != strconv.Itoa(each*clients) {
		t.Errorf("%s, want %d", got, each*clients)
	}
	_, err := session.Modify(t.Context(), "number", func(*values.Value) (values.Change, error) { return values.Change{Delete: true}, nil })
	if got := mustValue(t, session, "number"); err != nil || got != "<none>" {
		t.Errorf("%s, %v", got, err)
	}
}

// A transaction sees what it has written, takes effect as a whole, and not at all if what it has seen was changed.
func TestTransactionsOfValues(t *testing.T) {
	c := newCluster(t, 8)
	session := c.gateway.Values().Anybody()
	for _, spec := range []api.ClassSpec{{Name: "other", Ladder: "rs(3,2)", Prefixes: []string{"other/"}}} {
		if _, err := c.gateway.PutClass(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	setValue(t, session, "seen", "1")
	setValue(t, session, "gone", "2")
	begin := func() *values.Transaction {
		tx := session.Begin()
		if got := mustValue(t, tx, "seen"); got != "1" {
			t.Fatalf("seen is %s", got)
		}
		setValue(t, tx, "written", "3")
		setValue(t, tx, "other/class", "4")
		setValue(t, tx, "empty", "")
		setValue(t, tx, "large", string(noise(2<<20, 1)))
		if got := mustValue(t, tx, "written"); got != "3" {
			t.Fatalf("what was written is %s", got)
		}
		existed, err := tx.Delete(t.Context(), "gone")
		if got := mustValue(t, tx, "gone"); err != nil || !existed || got != "<none>" {
			t.Fatalf("%s, %v", got, err)
		}
		return tx
	}
	tx := begin()
	setValue(t, session, "seen", "1") // the same bytes again are another revision
	if err := tx.Commit(t.Context()); !errors.Is(err, api.ErrConflict) {
		t.Fatalf("what was seen was changed: %v", err)
	}
	if got := mustValue(t, session, "written"); got != "<none>" {
		t.Fatalf("a part was made: %s", got)
	}
	if err := begin().Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"seen": "1", "gone": "<none>", "written": "3", "other/class": "4", "empty": "", "large": string(noise(2<<20, 1)),
	} {
		if got := mustValue(t, session, key); got != want {
			t.Errorf("%s is %.20q, want %.20q", key, got, want)
		}
	}
	if info, err := session.Look(t.Context(), "other/class"); err != nil || info.Class != "other" || info.Size != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	watched := session.Begin()
	watched.Expect("absent", block.Stamp{})
	setValue(t, watched, "written", "5")
	setValue(t, session, "absent", "")
	if err := watched.Commit(t.Context()); !errors.Is(err, api.ErrConflict) {
		t.Errorf("what was not there is: %v", err)
	}
	gone := session.Begin()
	for _, key := range []string{"seen", "written", "large", "empty", "other/class", "absent"} {
		if existed, err := gone.Delete(t.Context(), key); !existed || err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if err := gone.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	names, next, err := session.List(t.Context(), "", "", 10)
	if err != nil || len(names) > 0 || next != "" {
		t.Errorf("%q, %q, %v", names, next, err)
	}
	c.audit()
}

// Many values at once, more than one group of which is not all there, are put by many: all of one or none.
func TestValuesPutTogether(t *testing.T) {
	c := newCluster(t, 8)
	session := c.gateway.Values().Anybody()
	const writers, rounds, keys = 4, 8, 5
	var putting sync.WaitGroup
	for writer := range writers {
		putting.Go(func() {
			for round := range rounds {
				var all []values.Entry
				for key := range keys {
					all = append(all, values.Entry{Key: fmt.Sprint("k", key), Put: values.Put{Data: fmt.Appendf(nil, "%d.%d", writer, round)}})
				}
				if err := session.PutMany(t.Context(), all); err != nil {
					t.Error(err)
				}
			}
		})
	}
	putting.Wait()
	names := []string{"k0", "none", "k1", "k2", "k3", "k4"}
	got, err := session.GetMany(t.Context(), names)
	if err != nil || got[1] != nil {
		t.Fatal(err)
	}
	for i, value := range got {
		if i != 1 && !bytes.Equal(value.Data, got[0].Data) {
			t.Errorf("%s is of another put than k0", names[i])
		}
	}
	for _, value := range got {
		value.Release()
	}
}

// Who a client is says what it may do, and what it may not is refused; what is taken back is taken from those who are there.
func TestRightsOnValues(t *testing.T) {
	c := newCluster(t, 8)
	file := filepath.Join(t.TempDir(), "users.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`users:
- name: gallery
  accessKey: {id: GALLERY, secret: 0f8c1b6e2a4d4f0b9e57c3a1d2b4e6f8}
  objects: [{may: [read, write, list], prefix: photos/, class: photos}]
`)
	users, err := access.Users(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	guarded := c.newGateway("guarded", func(o *gateway.Options) { o.Users = users }, caching)
	for _, name := range []string{"photos", "others"} {
		if _, err := guarded.PutClass(t.Context(), api.ClassSpec{Name: name, Ladder: "rep(3)", Prefixes: []string{name + "/"}}); err != nil {
			t.Fatal(err)
		}
	}
	store := guarded.Values()
	if anybody := store.Anybody(); !anybody.NeedsLogin() {
		t.Error("nobody is asked who they are")
	} else if _, err := anybody.Get(t.Context(), "photos/a"); !errors.Is(err, api.ErrUnauthenticated) {
		t.Error(err)
	}
	if _, err := store.Login(t.Context(), "GALLERY", "guessed-guessed-guessed"); !errors.Is(err, api.ErrUnauthenticated) {
		t.Error(err)
	}
	session, err := store.Login(t.Context(), "GALLERY", "0f8c1b6e2a4d4f0b9e57c3a1d2b4e6f8")
	if err != nil {
		t.Fatal(err)
	}
	setValue(t, session, "photos/a", "1")
	if got := mustValue(t, session, "photos/a"); got != "1" {
		t.Error(got)
	}
	open := c.newGateway("open").Values().Anybody()
	setValue(t, open, "others/a", "1")
	if _, err := open.Put(t.Context(), "photos/other", values.Put{Data: []byte("1"), Class: "others"}); err != nil {
		t.Fatal(err)
	}
	for key, may := range map[string]bool{"photos/a": true, "others/a": false, "photos/other": false, "photos/none": true, "others/none": false} {
		if !strings.HasSuffix(key, "none") {
			c.checkAt(guarded, key, []byte("1")) // it is in memory from now on
		}
		if _, known := session.GetNow(t.Context(), key); known != may {
			t.Errorf("%s is read from memory: %v", key, known)
		}
		if _, known := store.Anybody().GetNow(t.Context(), key); known {
			t.Errorf("%s is read from memory by one who has not said who he is", key)
		}
	}
	tx := session.Begin()
	for what, act := range map[string]func() error{
		"get of another prefix": func() error { _, err := session.Get(t.Context(), "others/a"); return err },
		"get of another class":  func() error { _, err := session.Get(t.Context(), "photos/other"); return err },
		"look":                  func() error { _, err := session.Look(t.Context(), "photos/other"); return err },
		"put":                   func() error { _, err := session.Put(t.Context(), "others/b", values.Put{}); return err },
		"put over another class": func() error {
			_, err := session.Put(t.Context(), "photos/other", values.Put{})
			return err
		},
		"put into another class": func() error {
			_, err := session.Put(t.Context(), "photos/b", values.Put{Class: "others"})
			return err
		},
		"delete":                  func() error { _, err := session.Delete(t.Context(), "photos/a"); return err },
		"delete in a transaction": func() error { _, err := tx.Delete(t.Context(), "photos/a"); return err },
		"put in a transaction":    func() error { _, err := tx.Put(t.Context(), "others/a", values.Put{}); return err },
		"list":                    func() error { _, _, err := session.List(t.Context(), "others/", "", 10); return err },
	} {
		if err := act(); !errors.Is(err, api.ErrForbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if names, _, err := session.List(t.Context(), "", "", 10); err != nil || len(names) != 1 || names[0] != "photos/a" {
		t.Errorf("%q, %v", names, err)
	}
}

// Values have bounds, and what is larger is there for others.
func TestBoundsOfValues(t *testing.T) {
	c := newCluster(t, 8)
	session := c.gateway.Values().Anybody()
	_, err := session.Put(t.Context(), "large", values.Put{Data: make([]byte, values.DefaultMaxBytes+1)})
	if !errors.Is(err, api.ErrBadRequest) {
		t.Error(err)
	}
	c.put("large", noise(values.DefaultMaxBytes+1, 1), api.PutOptions{})
	if _, err := session.Get(t.Context(), "large"); !errors.Is(err, api.ErrBadRequest) {
		t.Error(err)
	}
	if info, err := session.Look(t.Context(), "large"); err != nil || info.Size != values.DefaultMaxBytes+1 {
		t.Errorf("%+v, %v", info, err)
	}
	for _, key := range []string{"", strings.Repeat("k", api.MaxKeyBytes+1)} {
		if _, err := session.Get(t.Context(), key); !errors.Is(err, api.ErrBadRequest) {
			t.Errorf("%.5q: %v", key, err)
		}
	}
}

package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// keeping is a class that keeps two versions of small and large objects.
func keeping(keep api.KeepVersions) api.ClassSpec {
	return api.ClassSpec{
		Name: "kept", Ladder: "rep(1),rep(3),rs(3,2)", Default: "rep(3)", Prefixes: []string{"kept/"}, PackBelow: "4KiB", PackDelay: "0s",
		GroupBytes: "64KiB", KeepVersions: keep,
	}
}

// at reads an object at a revision over HTTP. It is nil where that is not kept.
func (c *cluster) at(key string, revision block.Stamp) []byte {
	c.t.Helper()
	server := httptest.NewServer(c.gateway.Handler())
	defer server.Close()
	answer, err := http.Get(server.URL + "/v1/objects/" + strings.ReplaceAll(key, "/", "%2F") + "?revision=" + revision.String())
	if err != nil {
		c.t.Fatal(err)
	}
	data, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		c.t.Fatal(err)
	}
	switch answer.StatusCode {
	case http.StatusOK:
		if got := strings.Trim(answer.Header.Get("ETag"), `"`); got != revision.String() {
			c.t.Errorf("%s at revision %s has the ETag %s", key, revision, got)
		}
		return data
	case http.StatusNotFound:
		return nil
	}
	c.t.Fatalf("%s at revision %s: %s, %s", key, revision, answer.Status, data)
	return nil
}

// history puts an object several times and returns its revisions, the last one first.
func (c *cluster) history(key string, size, times int) (revisions []block.Stamp) {
	c.t.Helper()
	for i := range times {
		object := c.put(key, noise(size, uint64(i)), api.PutOptions{})
		revisions = slices.Insert(revisions, 0, object.Revision)
	}
	return revisions
}

// keeps checks that an object keeps versions as history has put them, so many times, with the revisions of all but the last shown.
func (c *cluster) keeps(key string, size, times int, revisions []block.Stamp, kept int) {
	c.t.Helper()
	if shown := c.stat(key).Earlier; !slices.Equal(shown, revisions[1:1+kept]) {
		c.t.Errorf("%s keeps %v, want %v", key, shown, revisions[1:1+kept])
	}
	for i, revision := range revisions {
		want := noise(size, uint64(times-1-i))
		if i > kept {
			want = nil
		}
		if got := c.at(key, revision); !bytes.Equal(got, want) {
			c.t.Errorf("%s at revision %s, the last but %d, has %d bytes, want %d", key, revision, i, len(got), len(want))
		}
	}
}

// groups is how many groups there are.
func (c *cluster) groups() int {
	c.t.Helper()
	status, err := c.gateway.Status(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return int(status.Groups)
}

// Objects of a class that keeps versions have the last ones beside them, wherever they go, until those are put over or the object is
// deleted. Others have none.
func TestVersionsAreKept(t *testing.T) {
	c := newCluster(t, 9)
	c.putClass(c.gateway, keeping(2))
	sizes := map[string]int{"kept/small": 900, "kept/large": 150_000, "kept/empty": 0}
	revisions := map[string][]block.Stamp{}
	for key, size := range sizes {
		revisions[key] = c.history(key, size, 4)
	}
	check := func() {
		t.Helper()
		c.audit()
		for key, size := range sizes {
			c.keeps(key, size, 4, revisions[key], 2)
		}
	}
	check()
	if _, err := c.gateway.SweepRecords(t.Context()); err != nil {
		t.Fatal(err)
	}
	check()
	c.transition(api.TransitionRequest{Selector: api.Selector{Class: "kept"}, To: "rs(3,2)"})
	check()
	list, err := c.gateway.List(t.Context(), "", "", 100)
	if err != nil || len(list.Objects) != len(sizes) || list.Next != "" {
		t.Errorf("the listing has %d objects, next %q: %v", len(list.Objects), list.Next, err)
	}
	status, err := c.gateway.Status(t.Context())
	if err != nil || status.Objects != 3 || status.Earlier != 6 {
		t.Errorf("the status has %d objects and %d earlier versions: %v", status.Objects, status.Earlier, err)
	}
	for _, class := range status.Classes {
		is, want := [4]int64{class.Objects, class.Bytes, class.Earlier, class.Kept}, [4]int64{3, 900 + 150_000, 6, 2 * (900 + 150_000)}
		if class.Name == "kept" && is != want {
			t.Errorf("the status of the class is %+v", class)
		}
	}
	if count, known, err := c.gateway.Values().Anybody().Count(t.Context(), false); count != 3 || !known || err != nil {
		t.Errorf("%d values are counted, %t, %v", count, known, err)
	}
	reserved := block.EarlierKey("k", block.Stamp{})
	if _, err := c.gateway.Put(t.Context(), reserved, strings.NewReader("x"), api.PutOptions{Size: 1}); err == nil {
		t.Error("an object takes the place of an earlier version")
	}

	updated, err := c.gateway.Update(t.Context(), "kept/large", 70_000, noise(100, 9), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.at("kept/large", revisions["kept/large"][0]); !bytes.Equal(got, noise(150_000, 3)) {
		t.Error("an update changes what is kept")
	}
	if kept := c.stat("kept/large").Earlier; !slices.Equal(kept, revisions["kept/large"][:2]) || updated.Revision == kept[0] {
		t.Errorf("an updated object keeps %v", kept)
	}
	for key := range sizes {
		if err := c.gateway.Delete(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
		for _, revision := range revisions[key] {
			if got := c.at(key, revision); got != nil {
				t.Errorf("%s is deleted, and has %d bytes at revision %s", key, len(got), revision)
			}
		}
		c.put(key, noise(10, 1), api.PutOptions{})
		if kept := c.stat(key).Earlier; len(kept) > 0 {
			t.Errorf("%s keeps %v of what was deleted", key, kept)
		}
	}
	for key := range sizes {
		if err := c.gateway.Delete(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.gateway.SweepRecords(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.audit()
	if left := c.groups(); left != 0 {
		t.Errorf("%d groups are left", left)
	}
}

// Versions that share groups with what is dead are moved with what lives, and stay what they were.
func TestVersionsAreCompacted(t *testing.T) {
	c := newCluster(t, 9)
	c.putClass(c.gateway, keeping(1))
	const keys, size = 40, 800
	want := map[string]block.Stamp{}
	var entries []string
	for i := range keys {
		entries = append(entries, fmt.Sprintf("kept/%02d", i))
	}
	for range 3 {
		for _, key := range entries {
			want[key] = c.history(key, size, 3)[1]
		}
	}
	c.restart(newHandClock(), compacting)
	c.answering()
	c.await("the dead bytes of the class are gone", func() bool {
		stored, live := c.takes("kept")
		return stored <= live*4
	})
	moved := 0
	for _, key := range entries {
		if got := c.at(key, want[key]); !bytes.Equal(got, noise(size, 1)) {
			t.Errorf("%s at revision %s has %d bytes", key, want[key], len(got))
		}
		snapshot, err := c.catalog.Snapshot(t.Context(), block.EarlierKey(key, want[key]))
		if err != nil {
			t.Fatal(err)
		}
		if snapshot.Object.Extents[0].Group.Stamp != want[key] {
			moved++
		}
	}
	if moved == 0 {
		t.Error("no version has moved")
	}
	c.audit()
}

// A class that keeps what is durable has the last version with parities beside those without, until there is another with them.
func TestTheLastDurableVersionIsKept(t *testing.T) {
	c := newCluster(t, 9)
	c.putClass(c.gateway, keeping(api.KeepDurable))
	for _, size := range []int{900, 150_000} {
		key := fmt.Sprint("kept/", size)
		put := func(scheme string, seed uint64) block.Stamp {
			t.Helper()
			return c.put(key, noise(size, seed), api.PutOptions{Scheme: scheme}).Revision
		}
		earlier := func(want ...block.Stamp) {
			t.Helper()
			if kept := c.stat(key).Earlier; !slices.Equal(kept, want) {
				t.Errorf("%s keeps %v, want %v", key, kept, want)
			}
		}
		put("rep(1)", 1)
		put("rep(1)", 2)
		earlier()
		durable := put("rs(3,2)", 3)
		earlier()
		put("rep(1)", 4)
		put("rep(1)", 5)
		earlier(durable)
		c.lose(key, 0)
		if _, err := c.read(key); err == nil || !strings.Contains(err.Error(), durable.String()) {
			t.Errorf("a lost version is read: %v", err)
		}
		if got := c.at(key, durable); !bytes.Equal(got, noise(size, 3)) {
			t.Errorf("the durable version has %d bytes", len(got))
		}
		put("rep(3)", 6)
		earlier()
	}
	if _, err := c.gateway.SweepRecords(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.audit()
}

// Objects whose put does not say when they expire do so as their class has it.
func TestAClassSaysWhenObjectsExpire(t *testing.T) {
	c := newCluster(t, 9)
	c.putClass(c.gateway, api.ClassSpec{
		Name: "brief", Ladder: "rep(3),rs(3,2)", Prefixes: []string{"brief/"}, PackBelow: "4KiB", ExpireAfter: "1h",
	})
	own := time.Now().Add(time.Minute).Truncate(time.Millisecond)
	for _, size := range []int{100, 9000} {
		before := time.Now()
		object := c.put(fmt.Sprint("brief/", size), noise(size, 1), api.PutOptions{})
		if object.Expires.Before(before.Add(time.Hour-time.Millisecond)) || object.Expires.After(time.Now().Add(time.Hour)) {
			t.Errorf("an object of %d bytes expires at %s", size, object.Expires)
		}
		if object := c.put(fmt.Sprint("brief/", size), noise(size, 1), api.PutOptions{Expires: own}); !object.Expires.Equal(own) {
			t.Errorf("an object of %d bytes expires at %s, want %s", size, object.Expires, own)
		}
		if object := c.put(fmt.Sprint("other/", size), noise(size, 1), api.PutOptions{}); !object.Expires.IsZero() {
			t.Errorf("an object of another class expires at %s", object.Expires)
		}
	}
}

package gateway_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/values"
)

// Values that are read and not yet sent have a bounded memory: who gets none of it in time is told so, one command may read more values
// than fit beside those of others, and what is ahead of others leaves them theirs.
func TestMemoryOfValues(t *testing.T) {
	c := newCluster(t, 8)
	const size = 10_000
	var keys []string
	for i := range 8 {
		keys = append(keys, fmt.Sprintf("k%d", i))
		c.put(keys[i], noise(size, uint64(i)), api.PutOptions{})
	}
	store := values.New(values.Parts{
		Objects: c.gateway.Objects, Classes: c.gateway.Registry, MaxBytes: size, MemoryBytes: 8 * size, Patience: 50 * time.Millisecond,
	})
	session := store.Anybody()
	get := func(session *values.Session, key string) *values.Value {
		t.Helper()
		value, err := session.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	full := func(session *values.Session) {
		t.Helper()
		_, err := session.Get(t.Context(), keys[0])
		if !errors.Is(err, values.ErrNoRoom) || !errors.Is(err, api.ErrBusy) {
			t.Errorf("reading a value where there is no room: %v", err)
		}
	}
	ahead := session.Ahead()
	first, second := get(ahead, keys[0]), get(ahead, keys[1])
	full(ahead)
	held, err := session.GetMany(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	full(session)
	for _, value := range held[4:] {
		value.Release()
	}
	// There is room for four at once.
	four, err := session.GetMany(t.Context(), keys[:4])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.GetMany(t.Context(), keys[:5]); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("reading more than half of what there is together: %v", err)
	}
	if _, err := session.GetMany(t.Context(), keys[:4]); !errors.Is(err, values.ErrNoRoom) {
		t.Errorf("reading four where there is no room: %v", err)
	}
	for _, value := range append(four, held[:4]...) {
		value.Release()
	}
	// What decides what becomes of a value may keep it.
	var kept *values.Value
	if _, err := session.Modify(t.Context(), keys[0], func(now *values.Value) (values.Change, error) {
		kept.Release()
		kept = now.Keep()
		return values.Change{Delete: true}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(kept.Data) != size {
		t.Errorf("%d bytes were kept", len(kept.Data))
	}
	for _, value := range []*values.Value{first, second, kept} {
		value.Release()
	}
	all, err := session.GetMany(t.Context(), append(keys, "none"))
	if err != nil || all[0] != nil || all[8] != nil || len(all[7].Data) != size {
		t.Fatalf("%v, %v", all, err)
	}
	for _, value := range all {
		value.Release()
	}
}

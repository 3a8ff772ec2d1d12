package sqlite

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What a cache says is always what the database has at that moment, whenever readers fill it and commits begin, take effect, end and
// fail; and it keeps its bound.
func TestTheCacheIsTheDatabase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 4 * (cacheBeside + 10)
		c := newCache(int64(rapid.SampledFrom([]int{limit, 100 * limit}).Draw(t, "limit")))
		database := map[string][]byte{}
		key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
		keys := func() []string { return rapid.SliceOfNDistinct(key, 1, 3, rapid.ID[string]).Draw(t, "keys") }
		values := func(keys []string) (values [][]byte) {
			for _, key := range keys {
				values = append(values, bytes.Clone(database[key]))
			}
			return values
		}
		type read struct {
			keys   []string
			values [][]byte
			since  moment
		}
		var reads []read
		history := []map[string][]byte{{}} // states of the database
		was := func(state map[string][]byte, keys []string, values [][]byte) bool {
			for i, key := range keys {
				if want := state[key]; (values[i] == nil) != (want == nil) || !bytes.Equal(values[i], want) {
					return false
				}
			}
			return true
		}
		var looks []look
		var writes map[string][]byte // of the commit under way
		made, count := false, 0
		t.Repeat(map[string]func(*rapid.T){
			"read": func(*rapid.T) {
				of := keys()
				_, _, since := c.get(nil)
				reads = append(reads, read{of, values(of), since})
			},
			"fill": func(t *rapid.T) {
				if len(reads) == 0 {
					return
				}
				i := rapid.IntRange(0, len(reads)-1).Draw(t, "of")
				c.fill(reads[i].keys, reads[i].values, reads[i].since)
				reads = append(reads[:i], reads[i+1:]...)
			},
			"begin": func(t *rapid.T) {
				if writes != nil {
					return
				}
				writes, made = map[string][]byte{}, false
				for _, key := range keys() {
					if count++; count%3 > 0 {
						writes[key] = fmt.Append(nil, count)
					} else {
						writes[key] = nil
					}
				}
				c.begin(writes)
			},
			"take effect": func(t *rapid.T) {
				if writes == nil || made {
					return
				}
				made = true
				maps.Copy(database, writes)
				history = append(history, maps.Clone(database))
			},
			"end": func(t *rapid.T) {
				if writes == nil {
					return
				}
				if rapid.IntRange(0, 5).Draw(t, "long") == 0 {
					c.written, c.floor = map[string]uint64{}, c.commits+1 // as where so many are known that were written
				}
				c.end(made && rapid.Bool().Draw(t, "known"))
				writes = nil
			},
			"get": func(t *rapid.T) {
				of := keys()
				got, missing, at := c.get(of)
				for i, want := range values(of) {
					if slices.Contains(missing, i) {
						continue
					}
					if (got[i] == nil) != (want == nil) || !bytes.Equal(got[i], want) {
						t.Fatalf("%s is %q, and the cache says %q", of[i], want, got[i])
					}
				}
				looks = append(looks, look{of, got, missing, at, len(history) - 1})
			},
			"all": func(t *rapid.T) {
				of := keys()
				got, found := c.all(of)
				if wants := values(of); found && !slices.EqualFunc(got, wants, func(a, b []byte) bool {
					return (a == nil) == (b == nil) && bytes.Equal(a, b)
				}) {
					t.Fatalf("%q are %q, and the cache says %q", of, wants, got)
				}
			},
			"complete": func(t *rapid.T) {
				if len(looks) == 0 {
					return
				}
				last := looks[len(looks)-1]
				looks = looks[:len(looks)-1]
				for _, i := range last.missing {
					last.values[i] = database[last.keys[i]]
				}
				if !c.isSince(last.at) {
					return
				}
				for _, state := range history[last.state:] {
					if was(state, last.keys, last.values) {
						return
					}
				}
				t.Fatalf("%q were never %q together", last.keys, last.values)
			},
			"": func(t *rapid.T) {
				sum := int64(0)
				for key, value := range c.young {
					sum += int64(len(key) + len(value) + cacheBeside)
				}
				if sum != c.bytes || c.bytes > c.limit/2 {
					t.Fatalf("%d bytes, counted as %d, of %d", sum, c.bytes, c.limit)
				}
			},
		})
	})
}

// look is what a cache said of keys, when the database had a state.
type look struct {
	keys    []string
	values  [][]byte
	missing []int
	at      moment
	state   int
}

// What was used lately stays, what was not makes room, and what is large is not kept at all.
func TestTheCacheForgets(t *testing.T) {
	c := newCache(20 * (cacheBeside + 10))
	name := func(i int) string { return fmt.Sprintf("key%03d", i) }
	for i := range 100 {
		c.fill([]string{name(i)}, [][]byte{[]byte("1234")}, moment{})
		if _, missing, _ := c.get([]string{name(0)}); len(missing) > 0 {
			t.Fatalf("what is always used is forgotten after %d others", i)
		}
	}
	kept := 0
	for i := range 100 {
		if _, found := c.one(name(i)); found {
			kept++
		}
	}
	if kept < 10 || kept > 20 {
		t.Errorf("%d records are kept", kept)
	}
	c.fill([]string{"large"}, [][]byte{make([]byte, cacheLargest+1)}, moment{})
	if _, missing, _ := c.get([]string{"large"}); len(missing) == 0 {
		t.Error("a large value is kept")
	}
}

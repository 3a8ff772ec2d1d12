package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/restripe/restripe/agent/store"
)

// server names its keys only all together.
type server struct {
	keys   map[string]bool
	passes int
	asked  int // keys that were looked for
}

func (s *server) pass() *store.Pass {
	return &store.Pass{
		All: func(_ context.Context, prefix string) ([]string, error) {
			s.passes++
			all := slices.Collect(maps.Keys(s.keys))
			all = slices.DeleteFunc(all, func(key string) bool { return !strings.HasPrefix(key, prefix) })
			return append(all, all[:len(all)/3]...), nil // some twice
		},
		There: func(_ context.Context, keys []string) (there []string, err error) {
			s.asked += len(keys)
			return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !s.keys[key] }), nil
		},
	}
}

func newServer(count int) *server {
	s := &server{keys: map[string]bool{}}
	for i := range count {
		s.keys[fmt.Sprintf("k/%05d", i)] = true
	}
	return s
}

// page returns the keys of a page after another, nil for none.
func page(t *testing.T, p *store.Pass, before []string) (keys []string, more bool) {
	t.Helper()
	after := ""
	if len(before) > 0 {
		after = before[len(before)-1]
	}
	keys, more, err := p.Page(t.Context(), "k/", after, 10)
	if err != nil {
		t.Fatal(err)
	}
	return keys, more
}

func TestAListingIsOnePassAndEachKeyIsLookedForOnce(t *testing.T) {
	s := newServer(1000)
	p := s.pass()
	for listing := range 2 {
		var all []string
		for more := true; more; {
			var keys []string
			keys, more = page(t, p, all)
			all = append(all, keys...)
		}
		if len(all) != 1000 || !slices.IsSorted(all) || s.passes != listing+1 || s.asked != 1000*(listing+1) {
			t.Errorf("listing %d: %d keys, %d passes, %d keys looked for", listing, len(all), s.passes, s.asked)
		}
	}
}

func TestAPageIsFilledThoughKeysOfThePassAreGone(t *testing.T) {
	s := newServer(40)
	p := s.pass()
	first, _ := page(t, p, nil)
	for i := range 15 {
		delete(s.keys, fmt.Sprintf("k/%05d", 5+i))
	}
	second, more := page(t, p, first)
	if len(second) != 10 || second[0] != "k/00020" || !more {
		t.Errorf("the second page is %q, more %v", second, more)
	}
}

func TestKeysOfAPassAreForgottenAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(100)
		p := s.pass()
		keys, _ := page(t, p, nil)
		for range 3 {
			<-time.After(59 * time.Second) // each page begins the minute anew
			keys, _ = page(t, p, keys)
		}
		if s.passes != 1 {
			t.Errorf("a listing without a long pause took %d passes", s.passes)
		}
		<-time.After(61 * time.Second)
		s.keys["k/00040x"] = true
		keys, _ = page(t, p, keys)
		if s.passes != 2 || keys[0] != "k/00040" || keys[1] != "k/00040x" {
			t.Errorf("after a long pause: %d passes, keys %q", s.passes, keys)
		}
	})
}

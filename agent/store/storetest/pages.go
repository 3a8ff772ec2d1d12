package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/restripe/restripe/agent/store"
)

const (
	pagesPrefix = "p/"
	pagesKeys   = 300
)

// lister returns the capability to list, which every store has.
func lister(t *testing.T, s store.Store) store.Lister {
	t.Helper()
	lister, ok := s.(store.Lister)
	if !ok {
		t.Fatal("the store is no store.Lister")
	}
	return lister
}

// createPages stores the keys that pages are made of, among others before and after them in any order of keys.
func createPages(t *testing.T, s store.Store) (keys []string) {
	t.Helper()
	for i := range pagesKeys {
		key := fmt.Sprintf("%s%03d/%%*[x]", pagesPrefix, i)
		create(t, s, key, make([]byte, i%3))
		keys = append(keys, key)
		if i%10 == 0 {
			create(t, s, fmt.Sprintf("a/%d", i), nil)
			create(t, s, fmt.Sprintf("z/%d", i), nil)
		}
	}
	return keys
}

// pages lists page by page; between is called after each page, with its keys.
func pages(t *testing.T, l store.Lister, prefix string, limit int, between func(page []string)) (all []string) {
	t.Helper()
	for after, more := "", true; more; {
		var page []string
		var err error
		page, more, err = l.Page(t.Context(), prefix, after, limit)
		if err != nil {
			t.Fatalf("Page(%q, %q, %d): %v", prefix, after, limit, err)
		}
		if len(page) > limit || more && len(page) < limit {
			t.Fatalf("Page(%q, %q, %d) has %d keys, more %v", prefix, after, limit, len(page), more)
		}
		if between != nil {
			between(page)
		}
		if all = append(all, page...); len(page) > 0 {
			after = page[len(page)-1]
		}
	}
	return all
}

// wantOnce checks that each of the keys that stayed is in a listing once, and no other key twice.
func wantOnce(t *testing.T, listed, stayed []string) {
	t.Helper()
	times := map[string]int{}
	for _, key := range listed {
		if times[key]++; times[key] == 2 {
			t.Errorf("%q is in a listing twice", key)
		}
	}
	for _, key := range stayed {
		if times[key] == 0 {
			t.Errorf("%q is not in a listing", key)
		}
	}
}

func testPages(t *testing.T, s store.Store, _ Options) {
	l := lister(t, s)
	keys := createPages(t, s)
	var order []string
	for _, limit := range []int{1000, pagesKeys, pagesKeys - 1, 100, 7} {
		listed := pages(t, l, pagesPrefix, limit, nil)
		wantOnce(t, listed, keys)
		if len(listed) != len(keys) {
			t.Errorf("in pages of %d there are %d keys, want %d", limit, len(listed), len(keys))
		}
		if order != nil && !slices.Equal(listed, order) {
			t.Errorf("in pages of %d the order is another", limit)
		}
		order = listed
	}
	if found := pages(t, l, pagesPrefix+"007/%*[", 10, nil); len(found) != 1 || found[0] != keys[7] {
		t.Errorf("pages of one key have %q", found)
	}
	for _, prefix := range []string{"nothing", pagesPrefix + "%", "p/0*"} {
		if found := pages(t, l, prefix, 10, nil); len(found) != 0 {
			t.Errorf("pages of %q have %q", prefix, found)
		}
	}
	if all := pages(t, l, "", 64, nil); len(all) != pagesKeys+2*pagesKeys/10 {
		t.Errorf("pages of everything have %d keys", len(all))
	}
}

func testPagesAgain(t *testing.T, s store.Store, _ Options) {
	l := lister(t, s)
	keys := createPages(t, s)
	var one, other []string
	one = pages(t, l, pagesPrefix, 40, func(page []string) {
		after := ""
		if len(one) > 0 {
			after = one[len(one)-1]
		}
		again, _, err := l.Page(t.Context(), pagesPrefix, after, 40)
		if err != nil || !slices.Equal(again, page) {
			t.Errorf("the page after %q, asked for again, has %d keys, %v; %d before", after, len(again), err, len(page))
		}
		one = append(one, page...)
		if len(other) == 0 {
			other = pages(t, l, pagesPrefix, 70, nil) // all of another listing, between two pages of this one
		}
	})
	wantOnce(t, one, keys)
	wantOnce(t, other, keys)
}

func testPagesMeanwhile(t *testing.T, s store.Store, _ Options) {
	l := lister(t, s)
	keys := createPages(t, s)
	gone := map[string]bool{}
	remove := func(key string) {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		gone[key] = true
	}
	made := 0
	listed := pages(t, l, pagesPrefix, 20, func(page []string) {
		for range 20 {
			made++
			create(t, s, fmt.Sprintf("%snew/%d", pagesPrefix, made), nil)
		}
		if len(page) > 0 {
			remove(page[len(page)-1]) // where the next page begins
		}
		remove(keys[made%pagesKeys])
		if made > 20*pagesKeys {
			t.Fatal("the listing has no end")
		}
	})
	wantOnce(t, listed, slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return gone[key] }))
	after := pages(t, l, pagesPrefix, 50, nil)
	for _, key := range after {
		if gone[key] {
			t.Errorf("%q was deleted before a listing that has it", key)
		}
	}
	if want := len(keys) - len(gone) + made; len(after) != want {
		t.Errorf("a listing has %d keys, want %d", len(after), want)
	}
}

// wantPageError checks that a listing fails, where it begins and in the middle.
func wantPageError(t *testing.T, page func(after string) error, want error) {
	t.Helper()
	for _, after := range []string{"", "p/1"} {
		if err := page(after); !errors.Is(err, want) {
			t.Errorf("a page after %q: error %v, want %v", after, err, want)
		}
	}
}

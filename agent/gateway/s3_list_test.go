package gateway_test

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/gateway/api"
)

// s3Model is what a listing has to be: names in order, those that share what comes up to the delimiter as one.
func s3Model(keys []string, prefix, delimiter, after string) (names []string) {
	for _, key := range keys {
		if !strings.HasPrefix(key, prefix) || key <= after {
			continue
		}
		name := key
		if at := strings.Index(key[len(prefix):], delimiter); delimiter != "" && at >= 0 {
			name = key[:len(prefix)+at+len(delimiter)]
		}
		if name != after && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Listings, of whatever prefix and delimiter, page by page, have all that a model has, once.
func TestS3ListingsAreAsTheModel(t *testing.T) {
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	s.want(200, "PUT", "/photo", "", nil)
	name := rapid.StringOfN(rapid.SampledFrom([]rune("ab/0\u00ff-")), 1, 5, -1)
	// Many under one prefix, more than are read at a time.
	var keys []string
	have := map[string]bool{}
	put := func(key string) {
		if !have[key] {
			have[key] = true
			keys = append(keys, key)
			c.put("photos/"+key, []byte("x"), api.PutOptions{})
		}
	}
	for i := range 230 {
		put("ab/many/" + strconv.Itoa(i))
	}
	rapid.Check(t, func(rt *rapid.T) {
		for _, key := range rapid.SliceOfN(name, 0, 3).Draw(rt, "keys") {
			put(key)
		}
		slices.Sort(keys)
		prefix := rapid.OneOf(rapid.Just(""), rapid.Just("ab/"), name).Draw(rt, "prefix")
		delimiter := rapid.SampledFrom([]string{"", "/", "b", "//", "ÿ"}).Draw(rt, "delimiter")
		after := rapid.OneOf(rapid.Just(""), name, rapid.Just("ab/"), rapid.Just("ab/many/100")).Draw(rt, "after")
		most := rapid.SampledFrom([]int{1, 2, 3, 50, 1000}).Draw(rt, "most")
		isSecond := rapid.Bool().Draw(rt, "second")
		query := url.Values{
			"prefix": {prefix}, "delimiter": {delimiter}, "max-keys": {strconv.Itoa(most)}, "encoding-type": {"url"},
		}
		if isSecond {
			query.Set("list-type", "2")
			query.Set("start-after", after)
		} else {
			query.Set("marker", after)
		}
		want := s3Model(keys, prefix, delimiter, after)
		var got []string
		for pages := 0; ; pages++ {
			names, more, next := s.keys("photos", query.Encode())
			slices.Sort(names) // keys come before prefixes
			if len(names) > most || more && len(names) != most || pages > len(want) {
				rt.Fatalf("a page of %d has %d, and more: %t", most, len(names), more)
			}
			for _, name := range names {
				plain, err := url.PathUnescape(name)
				if err != nil {
					rt.Fatal(err)
				}
				got = append(got, plain)
			}
			if !more {
				break
			}
			if isSecond {
				query.Set("continuation-token", next)
			} else if next, err := url.PathUnescape(next); err == nil {
				query.Set("marker", next)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Fatalf("prefix %q, delimiter %q, after %q, %d at a time: %q, want %q", prefix, delimiter, after, most, got, want)
		}
	})
	s.refused("InvalidArgument", "GET", "/photos", "max-keys=x", nil)
	s.refused("InvalidArgument", "GET", "/photos", "max-keys=-1", nil)
	s.refused("InvalidArgument", "GET", "/photos", "encoding-type=x", nil)
	s.refused("InvalidArgument", "GET", "/photos", "list-type=3", nil)
	s.refused("InvalidArgument", "GET", "/photos", "list-type=2&continuation-token=%21", nil)
	if names, more, _ := s.keys("photos", "max-keys=0"); len(names) != 0 || more {
		t.Errorf("%q, %t", names, more)
	}
	if names, _, _ := s.keys("photo", ""); len(names) != 0 {
		t.Errorf("%q of another bucket", names)
	}
}

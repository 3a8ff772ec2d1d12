package block

import (
	"maps"
	"testing"
)

// What is said of the bytes goes, and nothing else does; the map that was given stays as it was.
func TestWithoutDigests(t *testing.T) {
	given := map[string]string{"a": "1", DigestPrefix + "b": "2", "digest": "3"}
	if got := WithoutDigests(given); !maps.Equal(got, map[string]string{"a": "1", "digest": "3"}) || len(given) != 3 {
		t.Errorf("%v of %v", got, given)
	}
	if got := WithoutDigests(map[string]string{DigestPrefix + "b": "2"}); got != nil {
		t.Errorf("%v", got)
	}
	same := map[string]string{"a": "1"}
	if got := WithoutDigests(same); !maps.Equal(got, same) || WithoutDigests(nil) != nil {
		t.Errorf("%v", got)
	}
}

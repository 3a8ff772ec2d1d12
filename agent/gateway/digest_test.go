package gateway_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
)

// What was changed between a client and the gateway is not stored where the client says what it sent, and can be told by it
// where it asks what was sent.
func TestDigestsOfWhatIsSent(t *testing.T) {
	c := newCluster(t, 8)
	server := httptest.NewServer(c.gateway.Handler())
	defer server.Close()
	short := func(data []byte) string {
		sum := sha256.Sum256(data)
		return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	}
	long := func(data []byte) string {
		sum := sha512.Sum512(data)
		return "sha-512=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	}
	do := func(method, path string, body io.Reader, length int64, header http.Header) (*http.Response, []byte) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength, request.Header = length, header
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reply.Body)
		if err := errors.Join(err, reply.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return reply, text
	}
	for _, size := range []int{0, 1, 100, 50_000, 3_000_000} {
		data := noise(size, 1)
		changed := append(bytes.Clone(data), 0)
		if size > 0 {
			changed = changed[:size]
			changed[size-1] ^= 1
		}
		for _, isKnown := range []bool{true, false} {
			for _, test := range []struct {
				digest string
				want   int
			}{
				{short(data), 200}, {long(data), 200}, {short(data) + ", " + long(data), 200},
				{"md5=:AAAA:, " + short(data), 200}, {"unixsum=:AAAA:", 200},
				{short(changed), 400}, {long(changed), 400}, {short(data) + ", " + long(changed), 400},
				{"sha-256=:AAAA:", 400}, {"sha-256=7", 400}, {"sha-256", 400}, {"sha-256=:", 400},
			} {
				key := strconv.Itoa(size) + "/" + strconv.FormatBool(isKnown) + "/" + test.digest
				path := api.RoutePutObject.With(key).Path
				length, body := int64(-1), io.MultiReader(bytes.NewReader(data))
				if isKnown {
					length, body = int64(size), bytes.NewReader(data)
				}
				reply, text := do("PUT", path, body, length, http.Header{"Content-Digest": {test.digest}})
				if reply.StatusCode != test.want {
					t.Errorf("%s: %d %s", key, reply.StatusCode, text)
				}
				if _, err := c.gateway.Stat(t.Context(), key); (err == nil) != (test.want == 200) {
					t.Errorf("%s: answered %d, and there is %v", key, test.want, err)
				}
			}
		}
		key := strconv.Itoa(size) + "/true/" + short(data)
		for _, test := range []struct{ want, bytes, digest string }{
			{"sha-256=1", "", short(data)}, {"sha-256=1, sha-512=9", "", long(data)}, {"sha-512=0, md5=10", "", ""}, {"?", "", ""}, {"", "", ""},
			{"sha-256=1", "bytes=10-49", short(data[min(10, size):min(50, size)])},
		} {
			if test.bytes != "" && size < 50 {
				continue
			}
			header := http.Header{}
			for name, value := range map[string]string{"Want-Content-Digest": test.want, "Range": test.bytes} {
				if value != "" {
					header.Set(name, value)
				}
			}
			reply, text := do("GET", api.RouteGetObject.With(key).Path, nil, 0, header)
			if got := reply.Trailer.Get("Content-Digest"); got != test.digest || test.digest != "" && short(text) != got && long(text) != got {
				t.Errorf("%d bytes, %+v: the digest of what was sent is %q, not %q", size, test, got, test.digest)
			}
		}
	}
	key, data := "50000/true/"+short(noise(50_000, 1)), []byte("other bytes")
	for digest, want := range map[string]int{short(data[1:]): 400, short(data): 200} {
		path := api.RoutePatchObject.With(key).Path + "?offset=5"
		reply, text := do("PATCH", path, bytes.NewReader(data), int64(len(data)), http.Header{"Content-Digest": {digest}})
		if reply.StatusCode != want {
			t.Errorf("an update: %d %s", reply.StatusCode, text)
		}
	}
}

package server

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"hash"
	"io"
	"net/http"

	"github.com/dunglas/httpsfv"

	"github.com/restripe/restripe/agent/gateway/api"
)

// Digests of what a request or an answer carries, as RFC 9530 has them: what was changed on the way between a client and the
// gateway would be encoded faithfully otherwise.

// digests are the algorithms, by their names in the RFC. Those that it has no confidence in are ignored, as it allows.
var digests = map[string]func() hash.Hash{"sha-256": sha256.New, "sha-512": sha512.New}

// checked reads a body of known or unknown length and fails with ErrBadRequest at its end if it is not what was announced.
type checked struct {
	body io.Reader // adds up what is read of it
	left int64     // of the announced length; less than 0: unknown
	want map[string][]byte
	sums map[string]hash.Hash
}

// withDigest returns a reader of body that checks it against the Content-Digest of its request, if there is one.
func withDigest(r *http.Request, body io.Reader) (io.Reader, error) {
	fields := r.Header.Values("Content-Digest")
	if len(fields) == 0 {
		return body, nil
	}
	announced, err := httpsfv.UnmarshalDictionary(fields)
	if err != nil {
		return nil, api.Refuse(api.ErrBadRequest, "Content-Digest: %w; want sha-256=:BASE64: or sha-512=:BASE64:", err)
	}
	c := &checked{left: r.ContentLength, want: map[string][]byte{}, sums: map[string]hash.Hash{}}
	for _, name := range announced.Names() {
		value, _ := announced.Get(name)
		create := digests[name]
		if create == nil {
			continue
		}
		item, isItem := value.(httpsfv.Item)
		sum, isBytes := item.Value.([]byte)
		c.sums[name], c.want[name] = create(), sum
		if !isItem || !isBytes || len(sum) != c.sums[name].Size() {
			return nil, api.Refuse(api.ErrBadRequest, "Content-Digest: %s is no value of %d bytes, as in %s=:BASE64:",
				name, c.sums[name].Size(), name)
		}
	}
	sums := make([]io.Writer, 0, len(c.sums))
	for _, sum := range c.sums {
		sums = append(sums, sum)
	}
	c.body = io.TeeReader(body, io.MultiWriter(sums...))
	if c.left == 0 {
		return c, c.check()
	}
	return c, nil
}

// Read checks with the last byte that was announced, or with the end.
func (c *checked) Read(into []byte) (n int, err error) {
	n, err = c.body.Read(into)
	isLast := err == io.EOF //nolint:errorlint // only the bare value is the end; an error that wraps it is a failure
	if c.left > 0 {
		c.left -= int64(n)
		isLast = isLast || c.left == 0
	}
	if isLast {
		if failed := c.check(); failed != nil {
			return n, failed
		}
	}
	return n, err
}

func (c *checked) check() error {
	for name, sum := range c.sums {
		if got := sum.Sum(nil); !bytes.Equal(got, c.want[name]) {
			return api.Refuse(api.ErrBadRequest, "the body is not what was sent: its %s is %s and Content-Digest says %s; send it again",
				name, base64.StdEncoding.EncodeToString(got), base64.StdEncoding.EncodeToString(c.want[name]))
		}
	}
	return nil
}

// wantedDigest returns the algorithm that Want-Content-Digest prefers, empty for none.
func wantedDigest(r *http.Request) (name string) {
	wanted, err := httpsfv.UnmarshalDictionary(r.Header.Values("Want-Content-Digest"))
	if err != nil {
		return "" // a preference that cannot be read is none
	}
	most := int64(0)
	for _, candidate := range wanted.Names() {
		value, _ := wanted.Get(candidate)
		item, _ := value.(httpsfv.Item)
		if weight, _ := item.Value.(int64); digests[candidate] != nil && weight > most {
			name, most = candidate, weight
		}
	}
	return name
}

// digestField returns the value of Content-Digest.
func digestField(name string, sum hash.Hash) string {
	return name + "=:" + base64.StdEncoding.EncodeToString(sum.Sum(nil)) + ":"
}

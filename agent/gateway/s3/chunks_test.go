package s3

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// The example of "Signature Calculations for the Authorization Header: Transferring Payload in Multiple Chunks" of the Amazon S3 API
// Reference.
func exampleChunks() (text string, by *authorization, key []byte) {
	by = &authorization{
		id: exampleID, day: "20130524", region: "us-east-1", timestamp: "20130524T000000Z",
		signature: "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
	}
	var body strings.Builder
	for _, chunk := range []struct {
		bytes     int
		signature string
	}{
		{65536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"},
		{1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"},
		{0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"},
	} {
		fmt.Fprintf(&body, "%x;chunk-signature=%s\r\n%s\r\n", chunk.bytes, chunk.signature, strings.Repeat("a", chunk.bytes))
	}
	return body.String(), by, by.key(exampleSecret)
}

func TestChunksOfTheReference(t *testing.T) {
	text, by, key := exampleChunks()
	read := func(text string) ([]byte, error) {
		c := newChunks(strings.NewReader(text), streamingSigned)
		c.verifies(by, key)
		return io.ReadAll(c)
	}
	got, err := read(text)
	if err != nil || !bytes.Equal(got, bytes.Repeat([]byte("a"), 66560)) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for name, change := range map[string]struct {
		text string
		want code
	}{
		"a byte":      {strings.Replace(text, "aaaa", "aaba", 1), signatureDoesNotMatch},
		"a signature": {strings.Replace(text, "0055627c", "0055627d", 1), signatureDoesNotMatch},
		"no signature": {strings.Replace(text,
			";chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497", "", 1), signatureDoesNotMatch},
		"a chunk left out":   {text[strings.Index(text, "400;"):], signatureDoesNotMatch},
		"the end cut off":    {text[:strings.Index(text, "0;chunk")], incompleteBody},
		"half a chunk":       {text[:1000], incompleteBody},
		"a length too large": {strings.Replace(text, "10000;", "10001;", 1), signatureDoesNotMatch},
		"a length too small": {strings.Replace(text, "10000;", "ffff;", 1), incompleteBody},
		"no length":          {"x\r\n", incompleteBody},
		"trailers":           {text + "a:b\r\n\r\n", code{}}, // behind the end, where nobody looks
	} {
		if _, err := read(change.text); (err == nil) != (change.want == code{}) || err != nil && codeOf(err) != change.want {
			t.Errorf("%s: %v, want %s", name, err, change.want.name)
		}
	}
}

// signedChunks is a body in chunks of these sizes, signed.
func signedChunks(data []byte, sizes []int, trailer string, by *authorization, key []byte) []byte {
	var out bytes.Buffer
	previous := by.signature
	next := func(kind, what string) string {
		previous = hex.EncodeToString(sign(key, kind+"\n"+by.timestamp+"\n"+by.scope()+"\n"+previous+"\n"+what))
		return previous
	}
	chunk := func(part []byte) {
		fmt.Fprintf(&out, "%x;chunk-signature=%s\r\n", len(part), next(algorithm+"-PAYLOAD", emptyDigest+"\n"+digestOf(string(part))))
	}
	for _, size := range append(sizes, len(data)) {
		if part := data[:min(max(size, 0), len(data))]; len(part) > 0 {
			chunk(part)
			out.Write(part)
			out.WriteString("\r\n")
			data = data[len(part):]
		}
	}
	chunk(nil)
	if trailer != "" {
		out.WriteString(trailer + "\r\nx-amz-trailer-signature:" + next(algorithm+"-TRAILER", digestOf(trailer+"\n")) + "\r\n")
	}
	out.WriteString("\r\n")
	return out.Bytes()
}

// Data that is sent in chunks, however it is cut, is read as it was, with its trailer; where a byte of it is changed on the way, it is
// either refused or read as it was.
func FuzzSignedChunks(f *testing.F) {
	f.Add([]byte("hello"), 2, 3, 10, byte('x'), true)
	f.Add([]byte(""), 0, 0, 0, byte(0), false)
	f.Fuzz(func(t *testing.T, data []byte, first, second, at int, to byte, trailing bool) {
		by := &authorization{day: "20130524", region: "r", timestamp: "20130524T000000Z", signature: "seed"}
		key := by.key("secret")
		trailer, kind := "", streamingSigned
		if trailing {
			trailer, kind = "x-amz-checksum-crc32:AAAAAA==", streamingSignedTrailer
		}
		text := signedChunks(data, []int{first, second}, trailer, by, key)
		read := func(text []byte) ([]byte, map[string]string, error) {
			c := newChunks(bytes.NewReader(text), kind)
			c.verifies(by, key)
			got, err := io.ReadAll(c)
			return got, c.trailers, err
		}
		got, trailers, err := read(text)
		if err != nil || !bytes.Equal(got, data) || trailing != (trailers["x-amz-checksum-crc32"] == "AAAAAA==") {
			t.Fatalf("%q is read as %q, %v, %v", data, got, trailers, err)
		}
		text[uint(at)%uint(len(text))] = to
		got, trailers, err = read(text)
		if err == nil && (!bytes.Equal(got, data) || trailing && trailers["x-amz-checksum-crc32"] != "AAAAAA==") {
			t.Fatalf("%q, changed on the way, is read as %q with %v", data, got, trailers)
		}
	})
}

// Whatever comes, the reader ends, and gives no more than came.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n"), true)
	f.Add([]byte("ffffffffffffffff\r\n"), false)
	f.Fuzz(func(t *testing.T, text []byte, trailing bool) {
		kind := streamingSigned
		if trailing {
			kind = streamingTrailer
		}
		got, err := io.ReadAll(newChunks(bytes.NewReader(text), kind))
		if len(got) > len(text) {
			t.Fatalf("%d bytes of %d, %v", len(got), len(text), err)
		}
		if errors.Is(err, io.EOF) {
			t.Fatalf("a broken body looks like a whole one: %v", err)
		}
	})
}

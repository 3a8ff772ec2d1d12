package rebuild_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/gateway/s3"
)

// s3 sends a request of S3, which has to be carried out, and returns the answer.
func (c *cluster) s3(method, path string, body []byte) *httptest.ResponseRecorder {
	c.t.Helper()
	server := s3.New(s3.Options{
		Objects: c.gateway.Objects, Classes: c.gateway.Registry, LeastPart: 1000, Logger: slog.New(slog.DiscardHandler),
	})
	// A real connection: bodies are read with deadlines.
	over := httptest.NewServer(server)
	defer over.Close()
	request, err := http.NewRequestWithContext(c.t.Context(), method, over.URL+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	reply, err := over.Client().Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	answer.Code = reply.StatusCode
	for name, values := range reply.Header {
		answer.Header()[name] = values
	}
	if _, err := answer.Body.ReadFrom(reply.Body); err != nil {
		c.t.Fatal(err)
	}
	if err := reply.Body.Close(); err != nil {
		c.t.Fatal(err)
	}
	if answer.Code >= 300 {
		c.t.Fatalf("%s %s: %d %s", method, path, answer.Code, answer.Body)
	}
	return answer
}

// Buckets in which there is nothing, and uploads under way with their parts, come back: what is known of them has blocks.
func TestBucketsAndUploadsOfS3ComeBack(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 9))
	c.s3("PUT", "/nothing", nil)
	c.s3("PUT", "/photos", nil)
	var upload struct {
		UploadID string `xml:"UploadId"`
	}
	if err := xml.Unmarshal(c.s3("POST", "/photos/a?uploads", nil).Body.Bytes(), &upload); err != nil {
		t.Fatal(err)
	}
	parts := [][]byte{noise(70_000, 1), noise(2000, 2), noise(10, 3)}
	tags := make([]string, len(parts))
	for i, part := range parts {
		reply := c.s3("PUT", fmt.Sprintf("/photos/a?partNumber=%d&uploadId=%s", i+1, upload.UploadID), part)
		tags[i] = reply.Header().Get("ETag")
	}
	c.lose(nil)
	if text := c.s3("GET", "/", nil).Body.String(); !strings.Contains(text, "<Name>nothing</Name>") ||
		!strings.Contains(text, "<Name>photos</Name>") {
		t.Errorf("the buckets are %s", text)
	}
	if text := c.s3("GET", "/photos?uploads", nil).Body.String(); !strings.Contains(text, upload.UploadID) {
		t.Errorf("the uploads are %s", text)
	}
	var list strings.Builder
	for i, tag := range tags {
		fmt.Fprintf(&list, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i+1, tag)
	}
	c.s3("POST", "/photos/a?uploadId="+upload.UploadID, []byte("<CompleteMultipartUpload>"+list.String()+"</CompleteMultipartUpload>"))
	if got := c.s3("GET", "/photos/a", nil).Body.Bytes(); !bytes.Equal(got, slices.Concat(parts...)) {
		t.Errorf("the object has %d bytes that are not those of its parts", len(got))
	}
	c.s3("DELETE", "/nothing", nil)
}

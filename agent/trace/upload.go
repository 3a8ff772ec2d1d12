package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// uploader sends spans by OTLP over HTTP, as protocol buffers. The library's own comes with gRPC, which would make the program of
// agents nearly twice as large.
type uploader struct {
	url    string
	client *http.Client
}

var _ otlptrace.Client = (*uploader)(nil)

// Start implements otlptrace.Client.
func (u *uploader) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (u *uploader) Stop(context.Context) error {
	u.client.CloseIdleConnections()
	return nil
}

// mostAnswer bounds what is read of a collector's answer.
const mostAnswer = 64 << 10

// UploadTraces implements otlptrace.Client. Its message is that of a request to export, field by field.
func (u *uploader) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encoding spans: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := u.client.Do(request)
	if err != nil {
		return err
	}
	said, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	err = errors.Join(err, answer.Body.Close())
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %s: %q", u.url, answer.Status, said)
	}
	return err
}

// stayHere follows no redirect: spans go where they were told to.
func stayHere(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

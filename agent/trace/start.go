package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Options say what is traced, and where that is sent.
type Options struct {
	Collector string  // URL of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318
	Share     float64 // of requests and background work that are traced, 0 to 1; requests that come with a trace are as it says
	Service   string  // what this process is: restripe-gateway
	Instance  string  // which of those: gw1
	Release   string  // of the program; empty: it is not said
	Logger    *slog.Logger
}

// lastWords bounds what stopping waits for a collector.
const lastWords = 5 * time.Second

// CheckCollector reports what is wrong with the URL of a collector.
func CheckCollector(collector string) error {
	at, err := url.Parse(collector)
	if err != nil || (at.Scheme != "http" && at.Scheme != "https") || at.Host == "" {
		return fmt.Errorf("%q is not the URL of a collector: want one such as http://127.0.0.1:4318", collector)
	}
	if at.User != nil { // every user of the machine could see it, and it would be in the log
		return fmt.Errorf("%q has a user or a password: take it out, and let a collector on this machine or a proxy show it", at.Redacted())
	}
	return nil
}

// CheckShare reports what is wrong with a share.
func CheckShare(share float64) error {
	if !(share >= 0 && share <= 1) {
		return fmt.Errorf("%v is no share: want 0 to 1", share)
	}
	return nil
}

// Start traces what this process does from now on. stop sends what is not sent yet, for some seconds at most; nothing is traced
// after it. A collector that does not answer is logged and costs spans, no requests.
func Start(ctx context.Context, o Options) (stop func(), err error) {
	if err := errors.Join(CheckCollector(o.Collector), CheckShare(o.Share)); err != nil {
		return nil, err
	}
	at, err := url.JoinPath(o.Collector, "v1/traces")
	if err != nil {
		return nil, fmt.Errorf("%q is not the URL of a collector: %w", o.Collector, err)
	}
	exporter, err := otlptrace.New(ctx, &uploader{url: at, client: &http.Client{CheckRedirect: stayHere}})
	if err != nil {
		return nil, fmt.Errorf("tracing to %s: %w", o.Collector, err)
	}
	about := []attribute.KeyValue{attribute.String("service.name", o.Service), attribute.String("service.instance.id", o.Instance)}
	if o.Release != "" {
		about = append(about, attribute.String("service.version", o.Release))
	}
	provider := sdk.NewTracerProvider( // what is part of a trace is as that is
		sdk.WithBatcher(exporter), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Share))), sdk.WithResource(resource.NewSchemaless(about...)),
	)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Logger.Warn("sending traces", "cause", err) }))
	begins := provider.Tracer("github.com/restripe/restripe")
	tracer.Store(&begins)
	return func() {
		tracer.Store(nil)
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			o.Logger.Warn("sending the last traces", "cause", err)
		}
	}, nil
}

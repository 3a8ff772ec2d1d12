package trace

import (
	"context"
	"net/http"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// tracer begins spans; nil while nothing is traced.
var tracer atomic.Pointer[trace.Tracer]

// Span is a part of a trace: something that was done, and how long it took. A nil Span is of what is not traced; its methods do
// nothing then. Its methods are those of one goroutine.
type Span struct{ span trace.Span }

// Begin begins something that may be a trace of its own where it is part of no other. The caller ends it.
func Begin(ctx context.Context, name string) (context.Context, *Span) {
	return start(ctx, name, trace.SpanKindInternal)
}

// BeginRequest begins the answer to a request over HTTP, which continues the trace that its header tells of, if any.
func BeginRequest(ctx context.Context, header http.Header, name string) (context.Context, *Span) {
	if tracer.Load() == nil {
		return ctx, nil
	}
	return start(propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(header)), name, trace.SpanKindServer)
}

// Within begins a part of something that is traced; nothing where nothing is.
func Within(ctx context.Context, name string) (context.Context, *Span) {
	return within(ctx, name, trace.SpanKindInternal)
}

// BeginCall is Within for what is asked of another process.
func BeginCall(ctx context.Context, name string) (context.Context, *Span) {
	return within(ctx, name, trace.SpanKindClient)
}

// BeginAnswer begins the answer to what another process asked with a Mark; nothing where that is empty or none.
func BeginAnswer(ctx context.Context, mark []byte, name string) (context.Context, *Span) {
	if tracer.Load() == nil || len(mark) != MarkBytes {
		return ctx, nil
	}
	parent := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(mark[:16]), SpanID: trace.SpanID(mark[16:]), TraceFlags: trace.FlagsSampled, Remote: true,
	})
	if !parent.IsValid() {
		return ctx, nil
	}
	return start(trace.ContextWithRemoteSpanContext(ctx, parent), name, trace.SpanKindServer)
}

func within(ctx context.Context, name string, kind trace.SpanKind) (context.Context, *Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, nil
	}
	return start(ctx, name, kind)
}

func start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, *Span) {
	begins := tracer.Load()
	if begins == nil {
		return ctx, nil
	}
	ctx, span := (*begins).Start(ctx, name, trace.WithSpanKind(kind))
	if !span.IsRecording() {
		return ctx, nil
	}
	return ctx, &Span{span}
}

// Text notes something about what is done.
func (s *Span) Text(key, value string) *Span {
	if s != nil {
		s.span.SetAttributes(attribute.String(key, value))
	}
	return s
}

// Int notes a number about what is done.
func (s *Span) Int(key string, value int64) *Span {
	if s != nil {
		s.span.SetAttributes(attribute.Int64(key, value))
	}
	return s
}

// End says that it is done, or why it was not.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.span.SetStatus(codes.Error, err.Error())
	}
	s.span.End()
}

// MarkBytes is how long a Mark is.
const MarkBytes = 24

// Mark returns what tells another process which trace, and what of it, a request to it belongs to: 16 bytes of the one and 8 of the
// other. nil where nothing is traced.
func Mark(ctx context.Context) []byte {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return nil
	}
	of := span.SpanContext()
	whole, part := of.TraceID(), of.SpanID()
	return append(append(make([]byte, 0, MarkBytes), whole[:]...), part[:]...)
}

// Carry returns ctx with the trace of another context, for work that outlives the one that asked for it.
func Carry(ctx, from context.Context) context.Context {
	span := trace.SpanFromContext(from)
	if !span.IsRecording() {
		return ctx
	}
	return trace.ContextWithSpan(ctx, span)
}

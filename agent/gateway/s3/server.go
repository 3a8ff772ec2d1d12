package s3

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/gateway/load"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/serve"
	"github.com/restripe/restripe/agent/trace"
)

// Options configure a Server. Objects and Classes are required.
type Options struct {
	Objects *object.Objects
	Classes *class.Registry
	Users   access.Authority // says whose access keys are; nil: nobody is asked who they are
	TLS     *tls.Config      // nil: connections are not encrypted
	Domains []string         // below which the names of hosts are those of buckets, in lower case
	Load    *load.Window     // of clients' requests for objects; nil: nobody wants to know
	Logger  *slog.Logger     // default slog.Default
	Metrics prometheus.Registerer

	MemoryBytes int64 // of what is sent and answered in XML, all together; default 64 MiB

	LeastPart int64         // bytes that each part of an upload has but the last; default 5 MiB
	Patience  time.Duration // after which an answer that takes long begins, and how often it then goes on; default 10 s
}

// What holds where nothing else is said.
const (
	leastPart = 5 << 20
	patience  = 10 * time.Second

	memoryBytes = 64 << 20
)

// Server serves clients of S3. Create it with New.
type Server struct {
	options      Options
	log          *slog.Logger
	metrics      *metrics
	memory       budget.Budget
	uploads      turns // of which one at a time is completed
	onlyLoopback bool  // it is for this machine alone
}

// New returns a server of the objects of a gateway.
func New(options Options) *Server {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	options.LeastPart = cmp.Or(options.LeastPart, leastPart)
	options.Patience = cmp.Or(options.Patience, patience)
	return &Server{
		options: options, log: options.Logger, metrics: newMetrics(options.Metrics),
		memory: budget.New(cmp.Or(options.MemoryBytes, memoryBytes)),
	}
}

// Serve serves clients, once, until the context ends; requests under way then have a few seconds. It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	s.onlyLoopback = s.options.Users == nil && serve.LoopbackHost(listener.Addr().String())
	if s.options.TLS != nil {
		config := s.options.TLS.Clone()
		config.NextProtos = []string{"http/1.1"}
		listener = tls.NewListener(listener, config)
	}
	server := serve.Server(s)
	s.metrics.connections.Watch(server)
	if err := serve.Until(ctx, listener, server, nil); err != nil {
		return fmt.Errorf("serving clients of S3: %w", err)
	}
	return nil
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	q := &request{Request: r, server: s, w: serve.NewAnswer(serve.PatientWriter{ResponseWriter: w}), id: newID()}
	w.Header().Set("X-Amz-Request-Id", q.id)
	w.Header().Set("X-Amz-Id-2", q.id)
	operation := "unknown"
	defer q.free()
	err := q.read()
	if err == nil {
		found := q.find()
		operation = found.name
		ctx, span := trace.BeginRequest(r.Context(), r.Header, "s3 "+operation)
		q.Request = r.WithContext(ctx)
		err = q.serve(found)
		span.Text("restripe.object", q.object()).End(err)
	}
	status := q.w.Status
	defer func() { s.note(operation, status, began, q.w) }()
	if err == nil {
		return
	}
	as := codeOf(err)
	status = as.status
	if status >= http.StatusInternalServerError && r.Context().Err() == nil && as != notImplemented {
		s.log.Warn("request failed", "method", r.Method, "path", r.URL.Path, "cause", err)
	}
	q.fail(as, err)
}

// note counts a request that has ended.
func (s *Server) note(operation string, status int, began time.Time, w *serve.Answer) {
	ended := time.Now()
	s.metrics.observe(operation, status, ended.Sub(began))
	if s.options.Load == nil || status == cancelled.status {
		return
	}
	if w.Sent {
		ended = w.Began
	}
	s.options.Load.Request(time.Now(), ended.Sub(began))
}

// read takes a request apart.
func (q *request) read() (err error) {
	s := q.server
	if s.options.Users == nil {
		onlyLoopback := s.onlyLoopback && bucketOfHost(q.Host, s.options.Domains) == ""
		if why := serve.Foreign(q.Request, onlyLoopback); why != "" {
			return refuse(accessDenied, "%s", why)
		}
	}
	if q.query, err = readQuery(q.URL.RawQuery); err != nil {
		return err
	}
	q.target, err = readTarget(q.Host, q.URL.EscapedPath(), s.options.Domains)
	return err
}

// serve carries a request out.
func (q *request) serve(found operation) error {
	if err := q.identify(); err != nil {
		return err
	}
	if owner := q.Header.Get("X-Amz-Expected-Bucket-Owner"); owner != "" && owner != ownerID {
		return refuse(accessDenied, "the bucket is of the owner %s, as all are here, and not of %.80q", ownerID, owner)
	}
	if err := q.checkVersion(); err != nil {
		return err
	}
	return found.serve(q.Context(), q)
}

// fail answers an error. Once bytes of an object were sent the connection is broken instead, so that no client takes a part for the
// whole.
func (q *request) fail(as code, err error) {
	if q.w.Sent {
		panic(http.ErrAbortHandler) // net/http's way to break the connection
	}
	if as == notModified || q.Method == http.MethodHead {
		q.w.WriteHeader(as.status)
		return
	}
	text, failed := xml.Marshal(bodyOfError(q, as, err))
	if failed == nil {
		if as == slowDown {
			q.w.Header().Set("Retry-After", "1")
		}
		failed = q.send(as.status, text)
	}
	if failed != nil {
		q.server.log.Debug("answering a request", "cause", failed)
	}
}

func bodyOfError(q *request, as code, err error) errorBody {
	body := errorBody{Code: as.name, Message: err.Error(), Resource: q.URL.Path, RequestID: q.id}
	if as.says != "" {
		body.Message, body.Detail = as.says, err.Error()
	}
	return body
}

// newID names a request, for those who ask about it.
func newID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // which never fails
	return strings.ToUpper(hex.EncodeToString(id[:]))
}

// isGone reports whether an error says that there is no such object.
func isGone(err error) bool {
	return err != nil && codeOf(err) == noSuchKey && !errors.Is(err, context.Canceled)
}

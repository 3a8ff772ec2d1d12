package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/serve"
	"github.com/restripe/restripe/agent/trace"
)

// Handler serves the gateway's HTTP API. Object bytes travel raw; everything else is JSON. Keys are percent-encoded path
// segments, so that they may hold any bytes; a key of dots alone has them encoded as %2E.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	route := func(route api.Route, handle func(w http.ResponseWriter, r *http.Request) error) {
		pattern := route.Pattern()
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			seen := serve.NewAnswer(w)
			ctx, span := trace.BeginRequest(r.Context(), r.Header, pattern)
			ctx, err := s.admit(r.WithContext(ctx), route)
			r = r.WithContext(ctx)
			if err != nil {
				s.refusal(r, route, err)
			} else {
				err = checkPost(r)
			}
			if err == nil {
				err = s.act(seen, r, route, handle)
			}
			if err != nil {
				s.fail(seen, r, err)
			}
			span.Text("http.route", route.Path).Text("restripe.object", r.PathValue("key")).
				Int("http.response.status_code", int64(seen.Status)).End(err)
			s.note(r, route, seen.Status)
			if strings.Contains(pattern, " /v1/objects/") && seen.Status != statusCancelled {
				ended := time.Now()
				if seen.Sent {
					s.load.Request(ended, seen.Began.Sub(began))
				} else {
					s.load.Request(ended, ended.Sub(began))
				}
			}
			s.requests.WithLabelValues(r.Method, pattern, strconv.Itoa(seen.Status)).Observe(time.Since(began).Seconds())
		})
	}
	object := func(to api.Route, serve func(w http.ResponseWriter, r *http.Request, key string) error) {
		route(to, func(w http.ResponseWriter, r *http.Request) error {
			key := r.PathValue("key")
			if err := s.mayObject(r, rights[to].Verb, key); err != nil {
				return err
			}
			return serve(w, r, key)
		})
	}
	object(api.RoutePutObject, s.servePut)
	object(api.RouteGetObject, s.serveGet) // HEAD too
	object(api.RoutePatchObject, s.servePatch)
	object(api.RouteDeleteObject, s.serveDelete)
	object(api.RouteStatObject, s.serveStat)
	route(api.RouteListObjects, s.serveList)
	route(api.RouteMoveObject, s.serveMove)
	route(api.RouteStartTransition, s.serveStart)
	route(api.RouteListTransitions, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.transitions.Transitions(r.Context()))
	})
	route(api.RouteGetTransition, s.serveTransition)
	route(api.RoutePauseTransition, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.transitions.PauseTransition(r.Context(), r.PathValue("id")))
	})
	route(api.RouteCancelTransition, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.transitions.CancelTransition(r.Context(), r.PathValue("id")))
	})
	route(api.RouteResumeTransition, s.serveResume)
	route(api.RouteThrottleTransition, s.serveThrottle)
	route(api.RouteEstimate, s.serveEstimate)
	route(api.RouteStatus, func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Query().Get("brief") == "true" {
			return reply(w)(s.overview.StatusBrief(r.Context()))
		}
		return reply(w)(s.overview.Status(r.Context()))
	})
	route(api.RouteLoad, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(s.load.Sum(time.Now()), nil) })
	route(api.RouteHeat, s.serveHeat)
	route(api.RouteDoctor, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(s.overview.Doctor(r.Context())) })
	route(api.RouteSweep, func(w http.ResponseWriter, r *http.Request) error {
		query := r.URL.Query()
		return reply(w)(s.sweeper.Sweep(r.Context(), api.SweepRequest{
			Node: block.NodeID(query.Get("node")), BeyondBrake: query.Get("beyondBrake") == "true",
		}))
	})
	s.routeRepair(route)
	route(api.RouteListClasses, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(s.classes.Classes(), nil) })
	route(api.RoutePutClass, s.servePutClass)
	route(api.RouteDeleteClass, s.serveDeleteClass)
	s.routeNodes(route)
	routeBalance(s, route)
	s.routeScrub(route)
	s.routeCompaction(route)
	s.routeLineage(route)
	s.routeAudit(route)
	sayOK := func(w io.Writer) error {
		_, err := io.WriteString(w, "ok\n")
		return err
	}
	route(api.RouteHealthy, func(w http.ResponseWriter, _ *http.Request) error { return sayOK(w) })
	route(api.RouteReady, func(w http.ResponseWriter, r *http.Request) error {
		if err := s.overview.Ready(r.Context()); err != nil {
			return err
		}
		return sayOK(w)
	})
	route(api.RouteMetrics, func(w http.ResponseWriter, r *http.Request) error {
		s.metrics.ServeHTTP(w, r)
		return nil
	})
	return mux
}

// checkPost refuses what any page could have a browser send without asking first.
func checkPost(r *http.Request) error {
	if r.Method != http.MethodPost {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return api.Refuse(api.ErrBadRequest, "a POST says Content-Type: application/json, with or without a body; this one says %q",
			r.Header.Get("Content-Type"))
	}
	return nil
}

// Guard returns a handler that passes on what no page of another site can have had a browser send: with onlyLoopback, for a
// gateway that other machines cannot reach and that asks nobody who they are, nothing is for another name than this machine's own.
func (s *Server) Guard(next http.Handler, onlyLoopback bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := serve.Foreign(r, onlyLoopback); why != "" {
			s.fail(serve.NewAnswer(w), r, fmt.Errorf("%w: %s", api.ErrForbidden, why))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fail answers an error. Once bytes of an object were sent the connection is broken instead, so that no client takes a
// part for the whole.
func (s *Server) fail(w *serve.Answer, r *http.Request, err error) {
	status, code := statusOf(err)
	if status >= 500 && r.Context().Err() == nil {
		s.log.Warn("request failed", "method", r.Method, "path", r.URL.Path, "cause", err)
	}
	if w.Sent {
		panic(http.ErrAbortHandler) // net/http's way to break the connection
	}
	body, marshalErr := json.Marshal(api.ErrorBody{Error: err.Error(), Code: code})
	if marshalErr != nil {
		body = []byte(`{"code":"internal"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	if code == api.CodeUnauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="restripe"`)
	}
	if code == api.CodeBusy {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	if _, err := w.Write(append(body, '\n')); err != nil {
		s.log.Debug("answering a request", "cause", err)
	}
}

// reply returns a function that answers a value as JSON, unless it came with an error.
func reply(w http.ResponseWriter) func(value any, err error) error {
	return func(value any, err error) error {
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(value)
	}
}

func readJSON(r *http.Request, into any) error {
	decoder := json.NewDecoder(io.LimitReader(r.Body, 1<<20))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return api.Refuse(api.ErrBadRequest, "request body: %w", err)
	}
	return nil
}

// condition reads If-Match and If-None-Match.
func condition(r *http.Request) (*block.Stamp, error) {
	if r.Header.Get("If-None-Match") == "*" {
		return &block.Stamp{}, nil
	}
	match := r.Header.Get("If-Match")
	if match == "" {
		return nil, nil
	}
	stamp, err := block.ParseStamp(strings.Trim(match, `"`))
	if err != nil {
		return nil, api.Refuse(api.ErrBadRequest, "If-Match: %w", err)
	}
	return &stamp, nil
}

func (s *Server) servePut(w http.ResponseWriter, r *http.Request, key string) error {
	revision, err := condition(r)
	if err != nil {
		return err
	}
	body, err := withDigest(r, patiently(w, r))
	if err != nil {
		return err
	}
	request, err := api.ParseRequest(r.Header.Get("Idempotency-Key"), time.Now())
	if err != nil {
		return err
	}
	query := r.URL.Query()
	expires, err := api.ParseExpires(query.Get("expires"), time.Now())
	if err != nil {
		return err
	}
	return reply(w)(s.objects.Put(r.Context(), key, body, api.PutOptions{
		Class: query.Get("class"), Scheme: query.Get("scheme"), Size: r.ContentLength, IfRevision: revision,
		Expires: expires, Metadata: api.MetadataIn(r.Header), Request: request,
	}))
}

// listPage is how many objects a page of a listing has where the client says nothing.
const listPage = 1000

// getTries is how often a read starts over because the object was overwritten before a byte was sent.
const getTries = 10

func (s *Server) serveGet(w http.ResponseWriter, r *http.Request, key string) error {
	for try := 0; ; try++ {
		begun, err := s.serveVersion(w, r, key)
		if begun || try == getTries || !errors.Is(err, api.ErrConflict) {
			return err
		}
	}
}

// open begins to read an object, at the revision that the request asks for.
func (s *Server) open(r *http.Request, key string) (*object.Reader, error) {
	asked := r.URL.Query().Get("revision")
	if asked == "" {
		return s.objects.Open(r.Context(), key)
	}
	revision, err := block.ParseStamp(asked)
	if err != nil {
		return nil, api.Refuse(api.ErrBadRequest, "revision: %w", err)
	}
	return object.OpenRevision(r.Context(), s.objects, key, revision)
}

// serveVersion answers one version of an object. begun says that bytes were sent.
func (s *Server) serveVersion(w http.ResponseWriter, r *http.Request, key string) (begun bool, err error) {
	reader, err := s.open(r, key)
	if err != nil {
		return false, err
	}
	if err := repairsAs(reader, r.URL.Query().Get("repair")); err != nil {
		return false, err
	}
	object := reader.Object()
	header := w.Header()
	header.Set("ETag", strconv.Quote(object.Revision.String()))
	header.Set("Last-Modified", object.Modified.Format(http.TimeFormat))
	header.Set("Accept-Ranges", "bytes")
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Restripe-Class", object.Class)
	if !object.Expires.IsZero() {
		header.Set("Restripe-Expires", object.Expires.Format(time.RFC3339Nano))
	}
	api.SetMetadata(header, object.Metadata)
	offset, length, partial, err := parseRange(r.Header.Get("Range"), object.Size)
	if err != nil {
		for _, name := range []string{"ETag", "Last-Modified", "Accept-Ranges"} {
			header.Del(name)
		}
		header.Set("Content-Range", fmt.Sprintf("bytes */%d", object.Size))
		return false, err
	}
	if r.Method == http.MethodHead {
		header.Set("Content-Length", strconv.FormatInt(length, 10))
		return false, nil
	}
	answer := &lazyWriter{ResponseWriter: w, status: http.StatusOK}
	if partial {
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, offset+length-1, object.Size))
		answer.status = http.StatusPartialContent
	}
	var into io.Writer = answer
	var sum hash.Hash
	name := wantedDigest(r)
	if name == "" {
		header.Set("Content-Length", strconv.FormatInt(length, 10))
	} else { // it follows the bytes, which only those can that end by themselves
		header.Set("Trailer", "Content-Digest")
		sum = digests[name]()
		into = io.MultiWriter(answer, sum)
	}
	err = reader.WriteTo(r.Context(), into, offset, length)
	if answer.begun { // the connection may be kept for later requests
		err = errors.Join(err, http.NewResponseController(w).SetWriteDeadline(time.Time{}))
	}
	if err == nil {
		answer.begin()
		if sum != nil {
			header.Set("Content-Digest", digestField(name, sum))
		}
		return true, nil
	}
	if !answer.begun {
		for _, name := range []string{"ETag", "Last-Modified", "Content-Length", "Content-Range", "Accept-Ranges", "Trailer"} {
			header.Del(name)
		}
	}
	return answer.begun, err
}

// repairsAs has a reader do that about lost blocks which a request asks for, in place of what the class says.
func repairsAs(reader *object.Reader, asked string) error {
	switch asked {
	case "", "false":
	case "true":
		reader.RepairFirst()
	default:
		mode, err := api.ParseRepairOnRead(asked)
		if err != nil {
			return api.Refuse(api.ErrBadRequest, "repair: %w; true has the read wait for the repair before it begins", err)
		}
		reader.RepairOnRead(mode)
	}
	return nil
}

// lazyWriter sends the status with the first byte, so that a read that fails before it can still answer an error.
type lazyWriter struct {
	http.ResponseWriter
	status int
	begun  bool
}

func (w *lazyWriter) begin() {
	if !w.begun {
		w.begun = true
		w.WriteHeader(w.status)
	}
}

// Write sends the status first.
func (w *lazyWriter) Write(p []byte) (int, error) {
	w.begin()
	return serve.PatientWriter{ResponseWriter: w.ResponseWriter}.Write(p)
}

// patiently is the body of a request, whose client may not stall.
func patiently(w http.ResponseWriter, r *http.Request) io.Reader {
	return serve.PatientBody(w, r, errSlow)
}

// outside refuses a range that has no byte of the object.
func outside(text string, size int64) error {
	return api.Refuse(errRange, "range %q has no byte of an object of %d bytes; ask for bytes from 0 to %d", text, size, max(size-1, 0))
}

// parseRange reads a Range header with one range.
func parseRange(text string, size int64) (offset, length int64, partial bool, err error) {
	if text == "" {
		return 0, size, false, nil
	}
	spec, ok := strings.CutPrefix(text, "bytes=")
	from, to, dash := strings.Cut(spec, "-")
	if !ok || !dash || strings.Contains(spec, ",") {
		return 0, size, false, nil // ranges this server does not know are ignored, as HTTP allows
	}
	if from == "" {
		n, err := strconv.ParseInt(to, 10, 64)
		if err != nil || n <= 0 || size == 0 {
			return 0, 0, false, outside(text, size)
		}
		n = min(n, size)
		return size - n, n, true, nil
	}
	first, err := strconv.ParseInt(from, 10, 64)
	if err != nil || first < 0 || first >= size {
		return 0, 0, false, outside(text, size)
	}
	last := size - 1
	if to != "" {
		if last, err = strconv.ParseInt(to, 10, 64); err != nil || last < first {
			return 0, 0, false, outside(text, size)
		}
		last = min(last, size-1)
	}
	return first, last - first + 1, true, nil
}

func (s *Server) servePatch(w http.ResponseWriter, r *http.Request, key string) error {
	revision, err := condition(r)
	if err != nil {
		return err
	}
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil {
		return api.Refuse(api.ErrBadRequest, "offset: want a whole number of bytes, as in ?offset=4096")
	}
	if r.ContentLength < 0 || r.ContentLength > object.MaxUpdate {
		return api.Refuse(api.ErrBadRequest, "an update announces its length, at most %d bytes; larger changes are puts", object.MaxUpdate)
	}
	request, err := api.ParseRequest(r.Header.Get("Idempotency-Key"), time.Now())
	if err != nil {
		return err
	}
	body, err := withDigest(r, patiently(w, r))
	if err != nil {
		return err
	}
	return reply(w)(s.objects.UpdateFrom(r.Context(), key, offset, body, r.ContentLength, revision, request))
}

func (s *Server) serveDelete(w http.ResponseWriter, r *http.Request, key string) error {
	revision, err := condition(r)
	if err != nil {
		return err
	}
	request, err := api.ParseRequest(r.Header.Get("Idempotency-Key"), time.Now())
	if err != nil {
		return err
	}
	if err := object.DeleteOnce(r.Context(), s.objects, key, revision, request); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) serveStat(w http.ResponseWriter, r *http.Request, key string) error {
	if r.URL.Query().Get("deep") == "true" {
		return reply(w)(s.objects.StatDeep(r.Context(), key))
	}
	return reply(w)(s.objects.Stat(r.Context(), key))
}

func (s *Server) serveList(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	prefix, after := query.Get("prefix"), query.Get("after")
	for name, into := range map[string]*string{"prefix64": &prefix, "after64": &after} {
		if text := query.Get(name); text != "" {
			decoded, err := api.DecodeKey(text)
			if err != nil {
				return api.Refuse(api.ErrBadRequest, "%s: %w", name, err)
			}
			*into = decoded
		}
	}
	limit := listPage
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return api.Refuse(api.ErrBadRequest, "limit %q: want a positive whole number", text)
		}
		limit = min(n, 10*listPage)
	}
	visible, err := s.mayList(r.Context(), prefix)
	if err != nil {
		return err
	}
	page, err := s.objects.List(r.Context(), prefix, after, limit)
	page.Objects = slices.DeleteFunc(page.Objects, func(o api.Object) bool { return !visible(&o) })
	return reply(w)(page, err)
}

func (s *Server) serveMove(w http.ResponseWriter, r *http.Request) error {
	var request api.MoveRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	return reply(w)(s.transitions.StartTransition(r.Context(), api.TransitionRequest{Selector: api.Selector{Key64: request.Key64}, To: request.To}))
}

func (s *Server) serveStart(w http.ResponseWriter, r *http.Request) error {
	var request api.TransitionRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	return reply(w)(s.transitions.StartTransition(r.Context(), request))
}

func (s *Server) serveResume(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		BytesPerSecond *int64 `json:"bytesPerSecond"`
	}
	if r.ContentLength != 0 {
		if err := readJSON(r, &request); err != nil {
			return err
		}
	}
	return reply(w)(s.transitions.ResumeTransition(r.Context(), r.PathValue("id"), request.BytesPerSecond))
}

// watchEvery is how often a watcher of a transition gets a line.
const watchEvery = 250 * time.Millisecond

func (s *Server) serveTransition(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if r.URL.Query().Get("watch") != "true" {
		return reply(w)(s.transitions.Transition(r.Context(), id))
	}
	t, err := s.transitions.Transition(r.Context(), id)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	var failed error
	job.Every(ctx, watchEvery, func(ctx context.Context) {
		if t, failed = s.transitions.Transition(ctx, id); failed == nil {
			if failed = json.NewEncoder(w).Encode(t); failed == nil {
				failed = http.NewResponseController(w).Flush()
			}
		}
		if failed != nil || t.State.Final() || t.State == api.TransitionPaused {
			cancel()
		}
	})
	if r.Context().Err() != nil {
		return nil // the watcher left
	}
	return failed
}

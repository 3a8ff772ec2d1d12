package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Handler serves the gateway's HTTP API. Object bytes travel raw; everything else is JSON. Keys are percent-encoded path
// segments, so that they may hold any bytes; a key of dots alone has them encoded as %2E.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	route := func(route api.Route, serve func(w http.ResponseWriter, r *http.Request) error) {
		pattern := route.Pattern()
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
			if err := serve(seen, r); err != nil {
				g.fail(seen, r, err)
			}
			if strings.Contains(pattern, " /v1/objects/") && seen.status != statusCancelled {
				ended := time.Now()
				if seen.sent {
					g.load.request(ended, seen.began.Sub(began))
				} else {
					g.load.request(ended, ended.Sub(began))
				}
			}
			g.metrics.requests.WithLabelValues(r.Method, pattern, strconv.Itoa(seen.status)).Observe(time.Since(began).Seconds())
		})
	}
	object := func(serve func(w http.ResponseWriter, r *http.Request, key string) error) func(http.ResponseWriter, *http.Request) error {
		return func(w http.ResponseWriter, r *http.Request) error { return serve(w, r, r.PathValue("key")) }
	}
	route(api.RoutePutObject, object(g.servePut))
	route(api.RouteGetObject, object(g.serveGet)) // HEAD too
	route(api.RoutePatchObject, object(g.servePatch))
	route(api.RouteDeleteObject, object(g.serveDelete))
	route(api.RouteStatObject, object(g.serveStat))
	route(api.RouteListObjects, g.serveList)
	route(api.RouteMoveObject, g.serveMove)
	route(api.RouteStartTransition, g.serveStart)
	route(api.RouteListTransitions, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(g.Transitions(r.Context()))
	})
	route(api.RouteGetTransition, g.serveTransition)
	route(api.RoutePauseTransition, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(g.PauseTransition(r.Context(), r.PathValue("id")))
	})
	route(api.RouteCancelTransition, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(g.CancelTransition(r.Context(), r.PathValue("id")))
	})
	route(api.RouteResumeTransition, g.serveResume)
	route(api.RouteThrottleTransition, g.serveThrottle)
	route(api.RouteEstimate, g.serveEstimate)
	route(api.RouteStatus, func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Query().Get("brief") == "true" {
			return reply(w)(g.StatusBrief(r.Context()))
		}
		return reply(w)(g.Status(r.Context()))
	})
	route(api.RouteLoad, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(g.Load(), nil) })
	route(api.RouteHeat, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(g.Heat(), nil) })
	route(api.RouteDoctor, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(g.Doctor(r.Context())) })
	route(api.RouteSweep, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(g.Sweep(r.Context(), true)) })
	g.routeRepair(route)
	route(api.RouteListClasses, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(g.Classes(), nil) })
	route(api.RoutePutClass, g.servePutClass)
	route(api.RouteDeleteClass, g.serveDeleteClass)
	g.routeNodes(route)
	g.routeScrub(route)
	route(api.RouteHealthy, func(w http.ResponseWriter, r *http.Request) error {
		_, err := io.WriteString(w, "ok\n")
		return err
	})
	mux.Handle(api.RouteMetrics.Pattern(), g.metrics.handler())
	return mux
}

// statusWriter remembers the status and whether anything was sent.
type statusWriter struct {
	http.ResponseWriter
	status int
	sent   bool
	began  time.Time // of the answer
}

func (w *statusWriter) begin() {
	if !w.sent {
		w.sent, w.began = true, time.Now()
	}
}

// WriteHeader remembers the status.
func (w *statusWriter) WriteHeader(status int) {
	w.begin()
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write remembers that bytes were sent.
func (w *statusWriter) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// fail answers an error. Once bytes of an object were sent the connection is broken instead, so that no client takes a
// part for the whole.
func (g *Gateway) fail(w *statusWriter, r *http.Request, err error) {
	status, code := statusOf(err)
	if status >= 500 && r.Context().Err() == nil {
		g.log.Warn("request failed", "method", r.Method, "path", r.URL.Path, "cause", err)
	}
	if w.sent {
		panic(http.ErrAbortHandler) // net/http's way to break the connection
	}
	body, marshalErr := json.Marshal(api.ErrorBody{Error: err.Error(), Code: code})
	if marshalErr != nil {
		body = []byte(`{"code":"internal"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(append(body, '\n')); err != nil {
		g.log.Debug("answering a request", "cause", err)
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

func (g *Gateway) servePut(w http.ResponseWriter, r *http.Request, key string) error {
	revision, err := condition(r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	return reply(w)(g.Put(r.Context(), key, patient{http.NewResponseController(w), r.Body}, api.PutOptions{
		Class: query.Get("class"), Scheme: query.Get("scheme"), Size: r.ContentLength, IfRevision: revision,
	}))
}

// listPage is how many objects a page of a listing has where the client says nothing.
const listPage = 1000

// getTries is how often a read starts over because the object was overwritten before a byte was sent.
const getTries = 10

func (g *Gateway) serveGet(w http.ResponseWriter, r *http.Request, key string) error {
	for try := 0; ; try++ {
		begun, err := g.serveVersion(w, r, key)
		if begun || try == getTries || !errors.Is(err, api.ErrConflict) {
			return err
		}
	}
}

// serveVersion answers one version of an object. begun says that bytes were sent.
func (g *Gateway) serveVersion(w http.ResponseWriter, r *http.Request, key string) (begun bool, err error) {
	reader, err := g.Open(r.Context(), key)
	if err != nil {
		return false, err
	}
	if r.URL.Query().Get("repair") == "true" {
		reader.RepairFirst()
	}
	object := reader.Object()
	header := w.Header()
	header.Set("ETag", strconv.Quote(object.Revision.String()))
	header.Set("Last-Modified", object.Modified.Format(http.TimeFormat))
	header.Set("Accept-Ranges", "bytes")
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Restripe-Class", object.Class)
	offset, length, partial, err := parseRange(r.Header.Get("Range"), object.Size)
	if err != nil {
		for _, name := range []string{"ETag", "Last-Modified", "Accept-Ranges"} {
			header.Del(name)
		}
		header.Set("Content-Range", fmt.Sprintf("bytes */%d", object.Size))
		return false, err
	}
	header.Set("Content-Length", strconv.FormatInt(length, 10))
	if r.Method == http.MethodHead {
		return false, nil
	}
	answer := &lazyWriter{ResponseWriter: w, status: http.StatusOK}
	if partial {
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, offset+length-1, object.Size))
		answer.status = http.StatusPartialContent
	}
	err = reader.WriteTo(r.Context(), answer, offset, length)
	if answer.begun { // the connection may be kept for later requests
		err = errors.Join(err, http.NewResponseController(w).SetWriteDeadline(time.Time{}))
	}
	if err == nil {
		answer.begin()
		return true, nil
	}
	if !answer.begun {
		for _, name := range []string{"ETag", "Last-Modified", "Content-Length", "Content-Range", "Accept-Ranges"} {
			header.Del(name)
		}
	}
	return answer.begun, err
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
	if err := http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(clientPatience)); err != nil {
		return 0, fmt.Errorf("bounding the wait for a client: %w", err)
	}
	return w.ResponseWriter.Write(p)
}

// clientPatience is how long a client may take for the next bytes of a transfer, which holds buffer memory meanwhile.
const clientPatience = time.Minute

// patient reads a request's body and gives up on a client that stalls.
type patient struct {
	control *http.ResponseController
	body    io.Reader
}

// Read waits for clientPatience at most.
func (p patient) Read(into []byte) (int, error) {
	if err := p.control.SetReadDeadline(time.Now().Add(clientPatience)); err != nil {
		return 0, fmt.Errorf("bounding the wait for a client: %w", err)
	}
	n, err := p.body.Read(into)
	if err != nil { // what follows may take its time
		if failed := p.control.SetReadDeadline(time.Time{}); failed != nil {
			return n, errors.Join(err, failed)
		}
	}
	return n, err
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

func (g *Gateway) servePatch(w http.ResponseWriter, r *http.Request, key string) error {
	revision, err := condition(r)
	if err != nil {
		return err
	}
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil {
		return api.Refuse(api.ErrBadRequest, "offset: want a whole number of bytes, as in ?offset=4096")
	}
	if r.ContentLength < 0 || r.ContentLength > maxUpdate {
		return api.Refuse(api.ErrBadRequest, "an update announces its length, at most %d bytes; larger changes are puts", maxUpdate)
	}
	release, err := g.memory.updates.reserve(r.Context(), r.ContentLength)
	if err != nil {
		return err
	}
	defer release()
	data, err := io.ReadAll(io.LimitReader(patient{http.NewResponseController(w), r.Body}, maxUpdate+1))
	if err != nil {
		return fmt.Errorf("reading the new bytes: %w", err)
	}
	return reply(w)(g.Update(r.Context(), key, offset, data, revision))
}

func (g *Gateway) serveDelete(w http.ResponseWriter, r *http.Request, key string) error {
	revision, err := condition(r)
	if err != nil {
		return err
	}
	if err := g.Delete(r.Context(), key, revision); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (g *Gateway) serveStat(w http.ResponseWriter, r *http.Request, key string) error {
	if r.URL.Query().Get("deep") == "true" {
		return reply(w)(g.StatDeep(r.Context(), key))
	}
	return reply(w)(g.Stat(r.Context(), key))
}

func (g *Gateway) serveList(w http.ResponseWriter, r *http.Request) error {
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
	return reply(w)(g.List(r.Context(), prefix, after, limit))
}

func (g *Gateway) serveMove(w http.ResponseWriter, r *http.Request) error {
	var request api.MoveRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	return reply(w)(g.StartTransition(r.Context(), api.TransitionRequest{Selector: api.Selector{Key64: request.Key64}, To: request.To}))
}

func (g *Gateway) serveStart(w http.ResponseWriter, r *http.Request) error {
	var request api.TransitionRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	return reply(w)(g.StartTransition(r.Context(), request))
}

func (g *Gateway) serveResume(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		BytesPerSecond *int64 `json:"bytesPerSecond"`
	}
	if r.ContentLength != 0 {
		if err := readJSON(r, &request); err != nil {
			return err
		}
	}
	return reply(w)(g.ResumeTransition(r.Context(), r.PathValue("id"), request.BytesPerSecond))
}

// watchEvery is how often a watcher of a transition gets a line.
const watchEvery = 250 * time.Millisecond

func (g *Gateway) serveTransition(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if r.URL.Query().Get("watch") != "true" {
		return reply(w)(g.Transition(r.Context(), id))
	}
	t, err := g.Transition(r.Context(), id)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	var failed error
	every(ctx, watchEvery, func(ctx context.Context) {
		if t, failed = g.Transition(ctx, id); failed == nil {
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

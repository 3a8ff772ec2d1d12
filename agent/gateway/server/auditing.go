package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/audit"
	"github.com/restripe/restripe/agent/gateway/api"
)

// serving answers a request, or returns why not.
type serving func(w http.ResponseWriter, r *http.Request) error

// act answers a request. A change of the cluster is recorded: before it is done, that it will be, and before it is answered, how it
// ended. What cannot be recorded is not done.
func (s *Server) act(w http.ResponseWriter, r *http.Request, route api.Route, serve serving) error {
	if s.audit == nil || !changes(rights[route]) {
		return serve(w, r)
	}
	entry := entryOf(r, route)
	var err error
	if entry.Request, err = asked(w, r); err != nil {
		return err
	}
	sequence, err := s.audit.Begin(entry)
	if err != nil {
		s.unaudited.Inc()
		return api.Refuse(api.ErrUnavailable,
			"nothing was changed: what is not in the audit log is not done, and it cannot be written: %w", err)
	}
	held := &heldAnswer{header: http.Header{}, status: http.StatusOK}
	err = serve(held, r)
	outcome := audit.Outcome{Result: audit.ResultDone}
	if err != nil {
		outcome = audit.Outcome{Result: resultOf(err), Error: oneLine(err)}
	} else if text := held.body.Bytes(); json.Valid(text) {
		outcome.After = text
	}
	if unrecorded := s.audit.End(sequence, outcome); unrecorded != nil {
		s.unaudited.Inc()
		s.log.Error("an action was recorded without its end", "action", entry.Action, "object", entry.Object, "cause", unrecorded)
		if err == nil {
			err = api.Refuse(api.ErrUnknownOutcome, "it was done, but the audit log has no end of it: %w", unrecorded)
		}
	}
	if err != nil {
		return err
	}
	return held.send(w)
}

// refusal records that somebody asked for a change to which they have no right.
func (s *Server) refusal(r *http.Request, route api.Route, err error) {
	_, known := r.Context().Value(userKey{}).(*access.User)
	if s.audit == nil || !known || !changes(rights[route]) || !errors.Is(err, api.ErrForbidden) {
		return
	}
	sequence, failed := s.audit.Begin(entryOf(r, route))
	if failed == nil {
		failed = s.audit.End(sequence, audit.Outcome{Result: audit.ResultRefused, Error: oneLine(err)})
	}
	if failed != nil { // it is refused anyway
		s.unaudited.Inc()
		s.log.Error("writing the audit log", "cause", failed)
	}
}

// entryOf is what is known of a change before it is done.
func entryOf(r *http.Request, route api.Route) audit.Entry {
	user := userIn(r.Context())
	return audit.Entry{
		User: user.Name, Method: string(user.By), From: r.RemoteAddr, Verb: string(rights[route].Verb), Action: route.Pattern(),
		Object: objectOf(r, route),
	}
}

// objectOf names what a request is about by its path: nodes/n1, classes/photos, transitions/7, repair.
func objectOf(r *http.Request, route api.Route) string {
	path := strings.TrimPrefix(route.Path, "/v1/")
	before, rest, named := strings.Cut(path, "{")
	if name, _, _ := strings.Cut(rest, "}"); named {
		return before + r.PathValue(name)
	}
	kind, _, _ := strings.Cut(path, "/")
	return kind
}

// askedBytes bounds the body of a request that changes the cluster.
const askedBytes = 1 << 20

// asked returns what a request says beside its path, and leaves its body to be read: the body where it is JSON, else the values of
// its query.
func asked(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	if r.ContentLength != 0 {
		body, err := io.ReadAll(io.LimitReader(patiently(w, r), askedBytes+1))
		if err != nil {
			return nil, err
		}
		if len(body) > askedBytes {
			return nil, api.Refuse(api.ErrBadRequest, "request body: it has more than %d bytes", askedBytes)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if json.Valid(body) {
			return body, nil
		}
	}
	values := r.URL.Query()
	if len(values) == 0 {
		return nil, nil
	}
	return json.Marshal(values)
}

// resultOf tells what was surely not done from what may have been.
func resultOf(err error) audit.Result {
	switch _, code := statusOf(err); code {
	case api.CodeBadRequest, api.CodeForbidden, api.CodeNotFound, api.CodeConflict, api.CodeTooFewNodes, api.CodeFull, api.CodeBusy:
		return audit.ResultRefused
	}
	return audit.ResultFailed
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// heldAnswer is an answer that is not sent yet.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (h *heldAnswer) Header() http.Header { return h.header }

// WriteHeader remembers the status.
func (h *heldAnswer) WriteHeader(status int) { h.status = status }

// Write keeps a part of the body.
func (h *heldAnswer) Write(p []byte) (int, error) { return h.body.Write(p) }

func (h *heldAnswer) send(w http.ResponseWriter) error {
	maps.Copy(w.Header(), h.header)
	w.WriteHeader(h.status)
	if h.body.Len() == 0 {
		return nil
	}
	_, err := w.Write(h.body.Bytes())
	return err
}

func (s *Server) routeAudit(route func(api.Route, func(http.ResponseWriter, *http.Request) error)) {
	route(api.RouteListAudit, s.serveAudit)
	route(api.RouteVerifyAudit, s.serveVerifyAudit)
}

// How many actions a page of the audit log has.
const (
	auditPage = 100
	auditMost = 1000
)

// errNoAudit is told where no log is kept.
func errNoAudit() error {
	return api.Refuse(api.ErrNotFound, "this gateway keeps no audit log: start it with --audit DIR")
}

// serveAudit answers a page of the audit log.
func (s *Server) serveAudit(w http.ResponseWriter, r *http.Request) error {
	if s.audit == nil {
		return errNoAudit()
	}
	query := r.URL.Query()
	filter := audit.Filter{User: query.Get("user"), Object: query.Get("object"), Verb: query.Get("verb")}
	for name, into := range map[string]*time.Time{"since": &filter.Since, "until": &filter.Until} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		var err error
		if *into, err = time.Parse(time.RFC3339, text); err != nil {
			return api.Refuse(api.ErrBadRequest, "%s %q: want a time such as 2027-01-31T12:00:00Z", name, text)
		}
	}
	before, err := wholeNumber(query.Get("before"), 0, "before")
	if err != nil {
		return err
	}
	limit, err := wholeNumber(query.Get("limit"), auditPage, "limit")
	if err != nil {
		return err
	}
	actions, next, err := s.audit.List(filter, before, int(min(max(limit, 1), auditMost)))
	if err != nil {
		return err
	}
	page := api.AuditPage{Actions: make([]api.AuditAction, 0, len(actions)), Next: next}
	for i := range actions {
		a := &actions[i]
		page.Actions = append(page.Actions, api.AuditAction{
			Sequence: a.Sequence, Begun: a.Begun, Ended: a.Ended, User: a.User, Method: a.Method, From: a.From, Verb: a.Verb, Action: a.Action,
			Object: a.Object, Request: a.Request, After: a.After, Result: string(a.Result), Error: a.Error,
		})
	}
	return reply(w)(page, nil)
}

// serveVerifyAudit reads the whole audit log and answers whether every record is there and as it was written.
func (s *Server) serveVerifyAudit(w http.ResponseWriter, r *http.Request) error {
	if s.audit == nil {
		return errNoAudit()
	}
	query := r.URL.Query()
	sequence, err := wholeNumber(query.Get("sequence"), 0, "sequence")
	if err != nil {
		return err
	}
	found, err := s.audit.Verify(audit.Head{Sequence: sequence, Hash: query.Get("hash")})
	if err != nil {
		return err
	}
	return reply(w)(api.AuditReport{
		Intact: found.Problem == "", Problem: found.Problem, First: found.First, Records: found.Records,
		Head: api.AuditHead{Sequence: found.Head.Sequence, Hash: found.Head.Hash},
	}, nil)
}

// wholeNumber reads a value of a query.
func wholeNumber(text string, absent int64, name string) (int64, error) {
	if text == "" {
		return absent, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, api.Refuse(api.ErrBadRequest, "%s %q: want a whole number", name, text)
	}
	return n, nil
}

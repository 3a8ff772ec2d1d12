package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/audit"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

// openAudit opens the audit log in a directory until the test ends.
func openAudit(t *testing.T, directory string) *audit.Log {
	t.Helper()
	log, err := audit.Open(directory, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

// What changes the cluster is in the audit log with who asked and what was answered, and so is what somebody had no right to; what
// clients do with objects is not. Only who has the right to it sees the log.
func TestChangesAreInTheAuditLog(t *testing.T) {
	c := newCluster(t, 8)
	users, log := usersFile(t), openAudit(t, t.TempDir())
	address := c.serveTo(func(o *gateway.Options) { o.Users, o.Audit = users, log })
	ctx := t.Context()
	ada := as(t, address, client.Options{Token: "token of ada"})
	auditor := as(t, address, client.Options{Token: "token of auditor"})
	gallery := as(t, address, client.Options{KeyID: "GALLERY", Secret: keySecret})
	if _, err := gallery.Put(ctx, "photos/a", bytes.NewReader(noise(100, 4)), client.PutOptions{Class: "odd"}); err != nil {
		t.Fatal(err)
	}
	limit := int64(5 << 20)
	if _, err := ada.DownNode(ctx, "n1"); !errors.Is(err, api.ErrForbidden) {
		t.Fatal(err)
	}
	if _, err := ada.ThrottleRepair(ctx, api.ThrottleRequest{BytesPerSecond: &limit}); err != nil {
		t.Fatal(err)
	}
	if _, err := ada.Pause(ctx, "none"); !errors.Is(err, api.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := gallery.PauseRepair(ctx); !errors.Is(err, api.ErrForbidden) {
		t.Fatal(err)
	}
	if _, err := as(t, address, client.Options{Token: "x"}).PauseRepair(ctx); !errors.Is(err, api.ErrUnauthenticated) {
		t.Fatal(err)
	}
	page, err := auditor.Audit(ctx, api.AuditFilter{}, 0, 0)
	if err != nil || page.Next != 0 {
		t.Fatalf("%+v, %v", page, err)
	}
	want := []api.AuditAction{
		{
			User: "gallery", Method: "accessKey", Verb: "pause", Action: "POST /v1/repair/pause", Object: "repair", Result: "refused",
			Error: "the verb pause",
		},
		{
			User: "ada", Method: "token", Verb: "pause", Action: "POST /v1/transitions/{id}/pause", Object: "transitions/none", Result: "refused",
			Error: "none",
		},
		{
			User: "ada", Method: "token", Verb: "pause", Action: "POST /v1/repair/throttle", Object: "repair", Result: "done",
			Request: json.RawMessage(`{"bytesPerSecond":5242880}`), After: json.RawMessage(`"bytesPerSecond":5242880`),
		},
		{
			User: "ada", Method: "token", Verb: "apply", Action: "POST /v1/nodes/{id}/down", Object: "nodes/n1", Result: "refused",
			Error: "the verb apply on storagebackends is missing",
		},
	}
	if len(page.Actions) != len(want) {
		t.Fatalf("the log has %d actions, want %d: %+v", len(page.Actions), len(want), page.Actions)
	}
	for i, have := range page.Actions {
		w := want[i]
		same := have.User == w.User && have.Method == w.Method && have.Verb == w.Verb && have.Action == w.Action && have.Object == w.Object &&
			have.Result == w.Result && strings.Contains(have.Error, w.Error) && bytes.Equal(have.Request, w.Request) &&
			bytes.Contains(have.After, w.After)
		if !same || !strings.HasPrefix(have.From, "127.0.0.1:") || have.Begun.IsZero() || have.Ended.Before(have.Begun) {
			t.Errorf("action %d is %+v, want %+v", i, have, w)
		}
	}
	seen := 0
	for before := int64(0); ; seen++ {
		page, err := auditor.Audit(ctx, api.AuditFilter{User: "ada"}, before, 1)
		if err != nil || len(page.Actions) != 1 || page.Actions[0].User != "ada" {
			t.Fatalf("page %d: %+v, %v", seen, page, err)
		}
		if before = page.Next; before == 0 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("%d pages follow the first, want 2", seen)
	}
	report, err := auditor.VerifyAudit(ctx, api.AuditHead{})
	if err != nil || !report.Intact || report.Records != 2*int64(len(want)) {
		t.Errorf("%+v, %v", report, err)
	}
	if report, err = ada.VerifyAudit(ctx, report.Head); err != nil || !report.Intact { // get lets see everything
		t.Errorf("%+v, %v", report, err)
	}
	report.Head.Hash = strings.Repeat("0", len(report.Head.Hash))
	if report, err = ada.VerifyAudit(ctx, report.Head); err != nil || report.Intact || report.Problem == "" {
		t.Errorf("with another head: %+v, %v", report, err)
	}
	_, err = gallery.Audit(ctx, api.AuditFilter{}, 0, 0)
	if !errors.Is(err, api.ErrForbidden) || !strings.Contains(err.Error(), "the verb audit") {
		t.Error(err)
	}
	if _, err := auditor.StatusBrief(ctx); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("who may see the log sees the cluster: %v", err)
	}
}

// Every request that changes the cluster is recorded when it is refused.
func TestEveryRefusedChangeIsInTheAuditLog(t *testing.T) {
	c := newCluster(t, 1)
	users, log := usersFile(t), openAudit(t, t.TempDir())
	handler := c.newGateway("other", func(o *gateway.Options) { o.Users, o.Audit = users, log }).Handler()
	var want []string
	for _, route := range api.Routes {
		if route.Method == http.MethodGet || strings.Contains(route.Path, "/objects/") || route == api.RouteEstimate {
			continue
		}
		want = append(want, route.Pattern())
		values := make([]string, strings.Count(route.Path, "{"))
		for i := range values {
			values[i] = "x"
		}
		r, answer := httptest.NewRequest(route.Method, route.With(values...).Path, nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer token of auditor")
		if handler.ServeHTTP(answer, r); answer.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", route.Pattern(), answer.Code, answer.Body)
		}
	}
	var have []string
	if err := log.Each(audit.Filter{User: "auditor"}, func(a audit.Action) error {
		have = append(have, a.Action)
		if a.Object == "" || strings.ContainsAny(a.Object, "{}") || a.Result != audit.ResultRefused {
			t.Errorf("%+v", a)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if strings.Join(have, "\n") != strings.Join(want, "\n") || len(want) < 20 {
		t.Errorf("recorded are\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// What cannot be recorded is not done, while objects are served as ever: neither over a log that somebody changed, nor where nothing
// can be written.
func TestWhatIsNotInTheAuditLogIsNotDone(t *testing.T) {
	c := newCluster(t, 8)
	directory := t.TempDir()
	log := openAudit(t, directory)
	address := c.serveTo(func(o *gateway.Options) { o.Audit = log })
	someone := as(t, address, client.Options{})
	if _, err := someone.PauseRepair(t.Context()); err != nil {
		t.Fatal(err)
	}
	check := func(words string) {
		t.Helper()
		someone := as(t, address, client.Options{})
		_, err := someone.ResumeRepair(t.Context())
		if !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
		if repair, err := someone.RepairStatus(t.Context()); err != nil || repair.State != api.RepairPaused {
			t.Errorf("repair is %+v, %v", repair, err)
		}
		if _, err := someone.Put(t.Context(), "k", bytes.NewReader(noise(100, 4)), client.PutOptions{}); err != nil {
			t.Error(err)
		}
		if text := metrics(t, address, ""); !strings.Contains(text, "restripe_gateway_audit_failures_total 1\n") {
			t.Error("the failure is not counted")
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	check("closed")
	path := filepath.Join(directory, "audit-000000000001.jsonl")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(text, []byte("anybody"), []byte("nobody!"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	log = openAudit(t, directory)
	address = c.serveTo(func(o *gateway.Options) { o.Audit = log })
	check("audit-000000000001.jsonl, line 1")
	findings, err := as(t, address, client.Options{}).Doctor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, f := range findings {
		told = told || f.Severity == "error" && strings.Contains(f.Text, "line 1") && strings.Contains(f.Cure, "move it away")
	}
	if !told {
		t.Errorf("the doctor says %+v", findings)
	}
}

// A gateway without an audit log says so.
func TestWithoutAnAuditLog(t *testing.T) {
	c := newCluster(t, 1)
	address := c.serveTo()
	if _, err := as(t, address, client.Options{}).Audit(t.Context(), api.AuditFilter{}, 0, 0); !errors.Is(err, api.ErrNotFound) ||
		!strings.Contains(err.Error(), "--audit") {
		t.Error(err)
	}
}

// metrics returns what a gateway shows to Prometheus that sends a token; empty: none.
func metrics(t *testing.T, address, token string) string {
	t.Helper()
	status, text := scrape(t, address, token)
	if status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	return text
}

func scrape(t *testing.T, address, token string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	_, err = body.ReadFrom(reply.Body)
	if err := errors.Join(err, reply.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, body.String()
}

// Figures are shown to who may see them, and to everybody where nobody is asked who they are.
func TestFiguresTakeARight(t *testing.T) {
	c := newCluster(t, 1)
	if text := metrics(t, c.serveTo(), ""); !strings.Contains(text, "restripe_gateway_") {
		t.Error(text)
	}
	users := usersFile(t)
	address := c.serveTo(func(o *gateway.Options) { o.Users = users })
	for token, want := range map[string]int{
		"": 401, "x": 401, "token of auditor": 403, "token of prometheus": 200, "token of ada": 200,
	} {
		if status, text := scrape(t, address, token); status != want {
			t.Errorf("%q: %d %s, want %d", token, status, text, want)
		}
	}
	if _, err := as(t, address, client.Options{Token: "token of prometheus"}).StatusBrief(t.Context()); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("who may see figures sees the cluster: %v", err)
	}
}

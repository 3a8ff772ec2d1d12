package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/gateway/client"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// What the gateways say of the compaction is shown, and it is started, paused and resumed.
func TestCompactionIsShownAndSteered(t *testing.T) {
	s := newStage(t)
	s.seen()
	s.put("small/", 3, 1000)
	paused, err := s.client.PauseCompaction(t.Context(), &consolev1.PauseCompactionRequest{Backend: "real"})
	if err != nil || paused.Compaction.State != "paused" || !strings.Contains(paused.Said, "compaction of real is paused") {
		t.Fatal(paused, err)
	}
	started, err := s.client.StartCompaction(t.Context(), &consolev1.StartCompactionRequest{BytesPerSecond: 1 << 30, Everything: true})
	if now := started.GetCompaction(); err != nil || now.Pass <= paused.Compaction.Pass || !now.Everything || now.BytesPerSecond != 1<<30 {
		t.Fatal(started, err)
	}
	var seen *consolev1.Compaction
	s.eventually("it has ended", func() bool {
		report, err := s.client.GetCompactions(t.Context(), &consolev1.GetCompactionsRequest{Backend: "real"})
		if err != nil || len(report.Compactions) != 1 || len(report.Sources) != 1 {
			t.Fatal(report, err)
		}
		seen = report.Compactions[0]
		return seen.Finished != nil && seen.Pass >= started.Compaction.Pass
	})
	if seen.Looked == nil || len(seen.Classes) != 1 || seen.Classes[0].Class != "default" || seen.Classes[0].DeadBytes <= 0 ||
		seen.Classes[0].Bytes <= seen.Classes[0].DeadBytes || seen.Classes[0].DeadAtMostPercent != 15 {
		t.Errorf("%v", seen)
	}
	resumed, err := s.client.ResumeCompaction(t.Context(), &consolev1.ResumeCompactionRequest{})
	if err != nil || resumed.Compaction.State == "paused" {
		t.Error(resumed, err)
	}
	_, err = s.client.StartCompaction(t.Context(), &consolev1.StartCompactionRequest{BytesPerSecond: -1})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Error(err)
	}
	_, err = s.client.PauseCompaction(t.Context(), &consolev1.PauseCompactionRequest{Backend: "none"})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Error(err)
	}
}

// A gateway of a release that does not compact is no source that fails.
func TestGatewaysThatDoNotCompactAreLeftOut(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if compaction, err := compactionOf(c, t.Context()); compaction != nil || err != nil {
		t.Errorf("%v, %v", compaction, err)
	}
}

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

// A node is added after a look at what that moves, and the balance is shown and steered.
func TestANodeIsAddedAndFilled(t *testing.T) {
	s := newStage(t)
	s.seen()
	s.put("o/", 30, 100<<10)
	name := &consolev1.NodeName{Backend: "real", Name: "n16"}
	address := s.cluster.StartAgent("n16")
	request := func(change func(*consolev1.AddNodeRequest)) *consolev1.AddNodeRequest {
		r := &consolev1.AddNodeRequest{
			Node: name, Address: address, FailureDomain: "rack9", Balance: true, BytesPerSecond: new(int64(1 << 20)),
		}
		change(r)
		return r
	}
	nowhere := request(func(r *consolev1.AddNodeRequest) { r.Address = "127.0.0.1:1" })
	_, err := s.client.PlanAddNode(t.Context(), nowhere)
	if connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "no agent of node n16 answers") {
		t.Errorf("where nobody answers: %v", err)
	}
	plain, err := s.client.PlanAddNode(t.Context(), request(func(r *consolev1.AddNodeRequest) { r.Balance, r.BytesPerSecond = false, nil }))
	if err != nil || plain.Plan != nil || plain.Said != "n16 can be added; it would take new groups, nothing more" {
		t.Errorf("without a balance it would be %v, %v", plain, err)
	}
	wanted := request(func(*consolev1.AddNodeRequest) {})
	planned, err := s.client.PlanAddNode(t.Context(), wanted)
	if err != nil || planned.Plan.GetBytes() <= 0 || planned.Plan.GetSeconds() <= 0 || len(planned.Plan.Nodes) != stageNodes+1 ||
		!strings.HasPrefix(planned.Said, "n16 can be added. ") || !strings.Contains(planned.Said, "would be moved, which takes") {
		t.Fatalf("it would be %v, %v", planned, err)
	}
	if list, err := s.client.ListNodes(t.Context(), &consolev1.ListNodesRequest{}); err != nil || len(list.Nodes) != stageNodes {
		t.Fatalf("after plans there are %d nodes, %v", len(list.GetNodes()), err)
	}
	plan, err := s.client.PlanBalance(t.Context(), &consolev1.PlanBalanceRequest{Backend: "real"})
	if err != nil || len(plan.Nodes) != stageNodes {
		t.Errorf("a balance of the nodes there are: %v, %v", plan, err)
	}
	wanted.BytesPerSecond = new(int64(1)) // so that it is under way until it has another rate
	added, err := s.client.AddNode(t.Context(), wanted)
	if err != nil || added.Node.GetFailureDomain() != "rack9" || !strings.Contains(added.Said, "blocks are moved to it") {
		t.Fatalf("added is %v, %v", added, err)
	}
	if _, err := s.client.AddNode(t.Context(), wanted); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("added twice: %v", err)
	}
	paused, err := s.client.PauseBalance(t.Context(), &consolev1.PauseBalanceRequest{Backend: "real"})
	if err != nil || paused.Balance.State != "paused" || paused.Said != "balance 1 of real is paused, at 1 B/s" {
		t.Fatalf("paused is %v, %v", paused, err)
	}
	resumed, err := s.client.ResumeBalance(t.Context(), &consolev1.ResumeBalanceRequest{})
	if err != nil || resumed.Balance.State != "running" {
		t.Fatalf("resumed is %v, %v", resumed, err)
	}
	faster, err := s.client.StartBalance(t.Context(), &consolev1.StartBalanceRequest{Backend: "real", BytesPerSecond: new(int64(0))})
	if err != nil || faster.Balance.Number != 1 || faster.Balance.BytesPerSecond != 0 {
		t.Fatalf("faster is %v, %v", faster, err)
	}
	s.eventually("the balance ends", func() bool {
		report, err := s.client.GetBalances(t.Context(), &consolev1.GetBalancesRequest{})
		return err == nil && len(report.Balances) == 1 && report.Balances[0].State == "done" && report.Balances[0].BytesMoved > 0 &&
			report.Balances[0].Finished != nil
	})
	_, err = s.client.CancelBalance(t.Context(), &consolev1.CancelBalanceRequest{Backend: "real"})
	if err == nil || !strings.Contains(err.Error(), "no balance under way") {
		t.Errorf("cancelled when it had ended: %v", err)
	}
	list, err := s.client.ListAudit(t.Context(), &consolev1.ListAuditRequest{})
	objects := map[string]int{}
	for _, action := range list.GetActions() {
		objects[action.Object]++
	}
	if err != nil || objects["node/real/n16"] != 2 || objects["balance/real"] != 4 {
		t.Errorf("recorded are %v, %v; plans are not", objects, err)
	}
}

// A gateway of a release that does not balance is no source that fails.
func TestGatewaysThatDoNotBalanceAreLeftOut(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if balance, err := balanceOf(c, t.Context()); balance != nil || err != nil {
		t.Errorf("%v, %v", balance, err)
	}
}

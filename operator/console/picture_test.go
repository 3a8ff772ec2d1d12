package console

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/stripe"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/console/drawing"
)

func drawn(t *testing.T, request *consolev1.GetPictureRequest) *consolev1.Picture {
	t.Helper()
	server, _ := alone(t, access.Local())
	p, err := server.GetPicture(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checkPicture holds a picture against what every plan must be.
func checkPicture(t *testing.T, p *consolev1.Picture) {
	t.Helper()
	sent, staged := int32(0), int32(0)
	for i, step := range p.Steps {
		if step.Kind == consolev1.StepKind_STEP_KIND_SEND {
			sent += step.Blocks
			if staged > 0 {
				t.Errorf("step %d sends after something was staged", i)
			}
		}
		if step.Kind == consolev1.StepKind_STEP_KIND_ADD {
			staged++
		}
		if step.BlocksSentTotal != sent || !strings.HasSuffix(step.Text, ".") {
			t.Errorf("step %d: %v, sent %d", i, step, sent)
		}
	}
	if sent != p.Cost.BlocksSent || staged != p.Cost.BlocksWritten || !p.Proved {
		t.Errorf("%d blocks sent and %d staged; the plan says %v", sent, staged, p.Cost)
	}
	if last := p.Steps[len(p.Steps)-1]; last.Kind != consolev1.StepKind_STEP_KIND_COMMIT {
		t.Errorf("the last step: %v", last)
	}
	columns := map[int32]map[int32]bool{}
	for _, cell := range p.Cells {
		if columns[cell.NewStripe] == nil {
			columns[cell.NewStripe] = map[int32]bool{}
		}
		if columns[cell.NewStripe][cell.Column] {
			t.Errorf("stripe %d has column %d twice", cell.NewStripe, cell.Column)
		}
		columns[cell.NewStripe][cell.Column] = true
	}
	if len(p.Cells) != int(p.Rows*p.Columns) {
		t.Errorf("%d cells of %d x %d", len(p.Cells), p.Rows, p.Columns)
	}
}

func TestAMergeSendsNothing(t *testing.T) {
	p := drawn(t, &consolev1.GetPictureRequest{From: "rep(3)", To: "rs(12,2)"})
	checkPicture(t, p)
	if p.Cost.BlocksSent != 0 || len(p.Cells) != 12 || len(p.Parities) != 2 || !strings.Contains(p.Steps[len(p.Steps)-1].Text, "Nothing crossed the network") {
		t.Errorf("a merge: %v", p)
	}
	for _, step := range p.Steps[:len(p.Steps)-1] {
		if len(step.OldStripes) != 12 || step.NewStripe != 0 || !strings.HasPrefix(step.Text, "parity node ") {
			t.Errorf("a step of a merge: %v", step)
		}
	}
}

func TestBlocksThatCross(t *testing.T) {
	p := drawn(t, &consolev1.GetPictureRequest{From: "rs(4,3)", To: "rs(5,3)"})
	checkPicture(t, p)
	ways := map[string]int32{}
	for _, way := range p.Comparisons {
		if way.Applies {
			ways[way.Way] = way.BlocksSent
		}
	}
	// The table of the design: 9 sent and at least 9, against 30, 32 and 52.
	if p.Cost.BlocksSent != 9 || ways[drawing.LowerBound] != 9 || ways["ers2-proxy"] != 30 || ways["reencode"] != 32 || ways["copy-pool"] != 52 {
		t.Errorf("sent %d, other ways %v", p.Cost.BlocksSent, ways)
	}
}

func TestEveryPlannerIsDrawn(t *testing.T) {
	for _, planner := range stripe.Planners() {
		checkPicture(t, drawn(t, &consolev1.GetPictureRequest{From: "rs(4,2)", To: "rs(6,2)", Planner: planner}))
	}
}

func TestPicturesThatAreRefused(t *testing.T) {
	server, _ := alone(t, access.Local())
	for _, test := range []struct {
		request *consolev1.GetPictureRequest
		code    connect.Code
	}{
		{&consolev1.GetPictureRequest{}, connect.CodeInvalidArgument},
		{&consolev1.GetPictureRequest{From: "rep(3)", To: "rs(99,2)"}, connect.CodeInvalidArgument},
		{&consolev1.GetPictureRequest{From: "rep(3)", To: "rs(4,2)", Ladder: "rep(3)"}, connect.CodeInvalidArgument},
		{&consolev1.GetPictureRequest{From: "rep(3)", To: "rs(4,2)", Columns: -1}, connect.CodeInvalidArgument},
		{&consolev1.GetPictureRequest{From: "rep(3)", To: "rs(4,2)", Planner: "magic"}, connect.CodeInvalidArgument},
		{&consolev1.GetPictureRequest{From: "rs(63,2)", To: "rs(62,2)", Ladder: "rs(59,2),rs(61,2),rs(62,2),rs(63,2)"}, connect.CodeFailedPrecondition},
		{&consolev1.GetPictureRequest{From: "rs(63,2)", To: "rs(64,2)"}, 0},
	} {
		p, err := server.GetPicture(t.Context(), test.request)
		if (err == nil) != (test.code == 0) || err != nil && connect.CodeOf(err) != test.code {
			t.Errorf("%v: %d cells, %v", test.request, len(p.GetCells()), err)
		}
	}
}

func TestSafetyInWords(t *testing.T) {
	for _, test := range []struct {
		tally  safetyTally
		safety consolev1.Safety
		line   string
	}{
		{safetyTally{seen: 1, objects: 1200000, canLose: 2}, consolev1.Safety_SAFETY_SAFE, "All 1,200,000 objects can lose 2 nodes."},
		{safetyTally{seen: 1, objects: 1, canLose: 1}, consolev1.Safety_SAFETY_SAFE, "The one object can lose 1 node."},
		{safetyTally{seen: 1, objects: 9, canLose: 1, incomplete: 312, repair: 240}, consolev1.Safety_SAFETY_REDUCED, "312 groups miss blocks. All 9 objects can lose 1 node now, repair done in about 4 min."},
		{safetyTally{seen: 1, objects: 9, canLose: 1, incomplete: 1, repairing: true}, consolev1.Safety_SAFETY_REDUCED, "1 group misses blocks. All 9 objects can lose 1 node now, repair is under way."},
		{safetyTally{seen: 1, objects: 9, canLose: 0, incomplete: 3}, consolev1.Safety_SAFETY_UNPROTECTED, "3 groups miss blocks. The loss of one more node may lose data now."},
		{safetyTally{seen: 1, objects: 9, canLose: 2, behind: []string{"a"}}, consolev1.Safety_SAFETY_BEHIND, "The catalog of a is behind what " +
			"its nodes hold: nothing is deleted until somebody decides. See `restripe catalog lineage`."},
		{safetyTally{unseen: []string{"a"}, canLose: 1<<31 - 1}, consolev1.Safety_SAFETY_UNSPECIFIED, "Not known: no gateway of a has answered yet."},
		{safetyTally{seen: 1, canLose: 1<<31 - 1}, consolev1.Safety_SAFETY_EMPTY, "Nothing is stored yet. Store something with `restripe put`."},
	} {
		if safety, line := test.tally.verdict(); safety != test.safety || line != test.line {
			t.Errorf("%+v: %v %q, want %v %q", test.tally, safety, line, test.safety, test.line)
		}
	}
}

package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/decide"
)

// A class is told how much may be dead where its policy names it, and is left alone where it does not, or where that is the
// default and the gateway is of a release that does not know the field, which says 0.
func TestDeadAtMostIsToldWhereItIsNamed(t *testing.T) {
	for _, c := range []struct {
		named   *int // by the policy
		is      int  // at the gateway
		inForce bool
		told    string
	}{
		{nil, 15, true, "nothing"},
		{nil, 40, true, "nothing"},
		{nil, 0, true, "nothing"},
		{new(15), 15, true, "nothing"},
		{new(15), 0, true, "nothing"},
		{new(15), 40, false, "nothing"},
		{new(40), 40, true, "40"},
		{new(40), 15, false, "40"},
		{new(40), 0, false, "40"},
		{new(1000), 1000, true, "1000"},
	} {
		class := decide.Class{
			Name: "media", Ladder: stripe.Ladder{stripe.Replicas(3)}, Default: stripe.Replicas(3), HalfLife: time.Hour, DeadAtMost: c.named,
		}
		info := api.ClassInfo{
			Name: "media", Ladder: "rep(3)", Default: "rep(3)", HalfLife: "1h0m0s", Dwell: "0s", Origin: api.ClassFromAPI, DeadAtMost: c.is,
		}
		about := fmt.Sprintf("%s named, %d there", text(c.named), c.is)
		if inForce(&info, &class) != c.inForce {
			t.Errorf("%s: in force is %v", about, !c.inForce)
		}
		if spec := specOf(&class); text(spec.DeadAtMost) != c.told {
			t.Errorf("%s: told is %s, want %s", about, text(spec.DeadAtMost), c.told)
		}
	}
}

// A class that gives prefixes away keeps what may be dead of it.
func TestDeadAtMostStaysWhereAClassIsWrittenAnew(t *testing.T) {
	for is, told := range map[int]string{0: "nothing", 15: "nothing", 40: "40"} {
		if spec := specOfInfo(&api.ClassInfo{Name: "media", Ladder: "rep(3)", DeadAtMost: is}); text(spec.DeadAtMost) != told {
			t.Errorf("%d there: told is %s, want %s", is, text(spec.DeadAtMost), told)
		}
	}
}

// What a policy says of packing and of repairs by reads is told where it is not the default, which gateways of earlier releases do not
// know: they say nothing of it.
func TestModesAreToldWhereTheyAreNamed(t *testing.T) {
	for _, c := range []struct {
		pack    api.PackMode // named by the policy
		repair  api.RepairOnRead
		packs   api.PackMode // at the gateway
		repairs api.RepairOnRead
		inForce bool
		told    string
	}{
		{"", "", "auto", "wait", true, "/"},
		{"", "", "batch", "never", true, "/"},
		{"auto", "wait", "auto", "wait", true, "/"},
		{"auto", "wait", "", "", true, "/"},
		{"auto", "", "batch", "wait", false, "/"},
		{"", "wait", "auto", "wake", false, "/"},
		{"batch", "wake", "batch", "wake", true, "batch/wake"},
		{"at-once", "", "", "", false, "at-once/"},
		{"", "never", "", "", false, "/never"},
	} {
		class := decide.Class{
			Name: "media", Ladder: stripe.Ladder{stripe.Replicas(3)}, Default: stripe.Replicas(3), HalfLife: time.Hour,
			PackMode: c.pack, Repair: c.repair,
		}
		info := api.ClassInfo{
			Name: "media", Ladder: "rep(3)", Default: "rep(3)", HalfLife: "1h0m0s", Dwell: "0s", Origin: api.ClassFromAPI,
			PackMode: c.packs, RepairOnRead: c.repairs,
		}
		if inForce(&info, &class) != c.inForce {
			t.Errorf("%+v: in force is %v", c, !c.inForce)
		}
		if spec := specOf(&class); fmt.Sprintf("%s/%s", spec.PackMode, spec.RepairOnRead) != c.told {
			t.Errorf("%+v: told is %s/%s", c, spec.PackMode, spec.RepairOnRead)
		}
	}
}

// A class that gives prefixes away keeps its modes.
func TestModesStayWhereAClassIsWrittenAnew(t *testing.T) {
	for _, c := range []struct {
		pack   api.PackMode
		repair api.RepairOnRead
		told   string
	}{{"auto", "wait", "/"}, {"", "", "/"}, {"batch", "wake", "batch/wake"}} {
		spec := specOfInfo(&api.ClassInfo{Name: "media", Ladder: "rep(3)", PackMode: c.pack, RepairOnRead: c.repair})
		if fmt.Sprintf("%s/%s", spec.PackMode, spec.RepairOnRead) != c.told {
			t.Errorf("%+v: told is %+v", c, spec)
		}
	}
}

func text(percent *int) string {
	if percent == nil {
		return "nothing"
	}
	return fmt.Sprint(*percent)
}

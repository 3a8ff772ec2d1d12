package operator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
)

// pinUntil is the change that pins the media policy.
func pinUntil(scheme string, until time.Time) string {
	return fmt.Sprintf(`{"spec":{"pin":{"scheme":%q,"until":%q,"by":"ada","reason":"the audit"}}}`, scheme, until.UTC().Format(time.RFC3339))
}

// A pin keeps what is cold where it is pinned, new objects too, until its time is over; then temperature decides again.
func TestAPinHoldsUntilItEnds(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"), strings.Replace(mediaPolicy("  stopPolicy: Hold\n"), "dwell: 1h", "dwell: 1m", 1))
	w.operator()
	w.fill(g, "media", "rep(3)", 0, 100)
	w.fill(g, "media", "rs(12,2)", 500, 100)
	w.patch(w.policy("media"), pinUntil("rs(4,2)", w.clock.Now().Add(300*24*time.Hour)))
	w.patch(w.policy("media"), `{"spec":{"stopPolicy":"None"}}`)
	w.eventually("all groups are where the class is pinned", func() bool { return g.Groups("media")["rs(4,2)"] == 200 })
	for _, transition := range w.transitions() {
		if transition.Spec.To != "rs(4,2)" || !transition.Spec.Pinned || !strings.Contains(transition.Spec.Reason, "by ada: the audit") {
			t.Errorf("while it is pinned there is %+v", transition.Spec)
		}
	}
	w.converged("media")
	if policy := w.policy("media"); reason(policy.Status.Conditions, "Pinned") != "Pinned" {
		t.Errorf("the pin is not a condition:\n%s", w.picture())
	}
	if class := classOf(t, g, "media"); class.Default != "rs(4,2)" {
		t.Errorf("new objects are written with %s", class.Default)
	}
	until := w.clock.Now().Add(2 * time.Minute).Truncate(time.Second)
	w.patch(w.policy("media"), pinUntil("rs(4,2)", until))
	w.eventually("temperature decides again", func() bool {
		counts := g.Groups("media")
		return counts["rep(3)"] == 100 && counts["rs(12,2)"] == 100
	})
	if at := w.clock.Now(); at.Before(until) {
		t.Errorf("it did so at %s, before the pin ended at %s", at, until)
	}
	w.eventually("the end of the pin is a condition", func() bool { return reason(w.policy("media").Status.Conditions, "Pinned") == "PinExpired" })
	if class := classOf(t, g, "media"); class.Default != "rep(3)" {
		t.Errorf("new objects are written with %s", class.Default)
	}
	unbroken(t, g)
}

func classOf(t *testing.T, g *gatewaysfake.Cluster, name string) api.ClassInfo {
	t.Helper()
	classes, err := g.Classes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, class := range classes {
		if class.Name == name {
			return class
		}
	}
	t.Fatalf("there is no class %s", name)
	return api.ClassInfo{}
}

// A pin ends what goes elsewhere, and taking the pin out ends what was made for it.
func TestPinningAndUnpinningInMidTransition(t *testing.T) {
	w := newWorld(t)
	g := w.media(slow)
	cooling := w.one("Running")
	w.patch(w.policy("media"), pinUntil("rep(3)", w.clock.Now().Add(300*24*time.Hour)))
	w.eventually("what goes elsewhere ends", func() bool { return job(g, cooling).State == api.TransitionCancelled })
	w.eventually("all groups are back", func() bool { return g.Groups("media")["rep(3)"] == mediaGroups })
	w.converged("media")
	w.patch(w.policy("media"), `{"spec":{"pin":null}}`)
	w.eventually("temperature decides again", func() bool { return g.Groups("media")["rs(12,2)"] == mediaGroups })
	unbroken(t, g)
}

// A pin for longer than a year is not carried out, and says what to do.
func TestAPinForTooLongIsRefused(t *testing.T) {
	w := newWorld(t)
	w.gateway("disks")
	w.apply(backend("disks"), mediaPolicy(""))
	w.operator()
	w.converged("media")
	w.patch(w.policy("media"), pinUntil("rep(3)", w.clock.Now().Add(400*24*time.Hour)))
	w.eventually("it is refused", func() bool { return reason(w.policy("media").Status.Conditions, "Accepted") == "InvalidPin" })
}

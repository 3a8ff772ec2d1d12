package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway"
)

// A gateway whose clock is minutes behind that of another is told of by the doctors of both, with what to do; one whose clock is right
// is not.
func TestClocksApartAreTold(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	late := c.newGateway("late", func(o *gateway.Options) { o.Clock = func() time.Time { return time.Now().Add(-5 * time.Minute) } })
	right := c.newGateway("right")
	told := func(g *gateway.Gateway, about string) bool {
		findings, err := g.Doctor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, finding := range findings {
			if !strings.Contains(finding.Text, "its clock and that of gateway") {
				continue
			}
			if finding.Subject == "gateway right" && g != late || finding.Subject == "gateway gw" && g != late {
				t.Fatalf("a clock that is right is told of: %+v", finding)
			}
			if finding.Subject == about {
				found = finding.Severity == "warning" && strings.Contains(finding.Text, "m0s apart") && strings.Contains(finding.Cure, "NTP")
			}
		}
		return found
	}
	c.await("each of them tells of the other clock", func() bool {
		return told(late, "gateway right") && told(right, "gateway late") && told(c.gateway, "gateway late")
	})
}

package gateway_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Gateways that do not reach the same nodes, and whose clocks differ.

// deafTo keeps a gateway from reaching a node.
func deafTo(lame *testAgent) func(*gateway.Options) {
	dialer := net.Dialer{Timeout: time.Second}
	return func(o *gateway.Options) {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			if address == lame.address {
				return nil, errors.New("no route to host")
			}
			return dialer.DialContext(ctx, "tcp", address)
		}
	}
}

func tending(o *gateway.Options) { o.SweepEvery, o.OrphanEvery = 200*time.Millisecond, -1 }

// says waits until a gateway's doctor says something of a subject.
func (c *cluster) says(g *gateway.Gateway, subject, part string) {
	c.t.Helper()
	c.await("the doctor says of "+subject+": "+part, func() bool {
		findings, err := g.Doctor(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		return slices.ContainsFunc(findings, func(f api.Finding) bool { return f.Subject == subject && strings.Contains(f.Text, part) })
	})
}

// A node that one of two gateways cannot reach is not given up by it, however long that lasts; the doctors tell. Once it
// answers nobody it is.
func TestANodeThatOneGatewayHearsIsNotGivenUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	lame := c.agents[2]
	c.stopGateway()
	seeing := c.newGateway("seeing", tending)
	blind := c.newGateway("blind", tending, deafTo(lame))
	if _, err := blind.SetPatience(t.Context(), api.Patience{DownAfterSeconds: 1, OutAfterSeconds: 2}); err != nil {
		t.Fatal(err)
	}
	for _, g := range []*gateway.Gateway{blind, seeing} {
		c.says(g, "node "+string(lame.id), "gateways disagree about it: blind cannot reach it, seeing can")
	}
	c.during(8*time.Second, func() {
		if node := c.record(lame.id); node.Out != "" || node.Fenced {
			t.Fatalf("it was given up: %+v", node)
		}
	})
	lame.stop()
	c.await("a node that answers nobody is given up", func() bool { return c.record(lame.id).Out != "" })
}

// What one gateway alone hears of three is given up by the others and stays out, rather than being taken back and given up
// again and again.
func TestGatewaysDoNotFightOverANode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	lame := c.agents[2]
	c.stopGateway()
	c.newGateway("seeing", tending)
	blind := c.newGateway("blind1", tending, deafTo(lame))
	c.newGateway("blind2", tending, deafTo(lame))
	if _, err := blind.SetPatience(t.Context(), api.Patience{DownAfterSeconds: 1, OutAfterSeconds: 2}); err != nil {
		t.Fatal(err)
	}
	c.await("most gateways give it up", func() bool { return c.record(lame.id).Out != "" })
	version := c.record(lame.id).Version
	c.during(6*time.Second, func() {
		if node := c.record(lame.id); node.Version != version {
			t.Fatalf("its record changes again: %+v", node)
		}
	})
}

// The doctor tells how far the clock of another gateway is from its own.
func TestTheDoctorComparesClocks(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	if _, err := c.gateway.SetPatience(t.Context(), api.Patience{DownAfterSeconds: 1, OutAfterSeconds: 600}); err != nil {
		t.Fatal(err)
	}
	c.newGateway("hasty", func(o *gateway.Options) { o.Clock = func() time.Time { return time.Now().Add(2 * time.Hour) } })
	c.newGateway("right")
	c.says(c.gateway, "gateway hasty", "are 2h0m0s apart")
	findings, err := c.gateway.Doctor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Subject == "gateway right" {
			t.Errorf("a clock that is right: %+v", f)
		}
	}
}

//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

func TestScrubTable(t *testing.T) {
	text := scrubTable([]scrubRun{
		{scheme: stripe.RS(4, 2), depth: api.ScrubAudit, cell: 1 << 20, data: 2 << 30, read: 3 << 30, control: 30 << 10, between: 2 << 10, elapsed: 2 * time.Second, cpu: 3 * time.Second},
		{scheme: stripe.RS(4, 2), depth: api.ScrubShallow, cell: 1 << 20, data: 2 << 30, read: 3 << 30, control: 8 << 10, elapsed: time.Second},
	}).String()
	for _, row := range []string{
		"| rs(4,2), audit   |     1024 |            16.0 |              1536 | 98304 |  1.50 |           1.00 |",
		"| rs(4,2), shallow |     1024 |             4.0 |              1536 | 393216 |",
	} {
		if squeeze := strings.Join(strings.Fields(row), " "); !strings.Contains(strings.Join(strings.Fields(text), " "), squeeze) {
			t.Errorf("%s\nhas no row\n%s", text, row)
		}
	}
}

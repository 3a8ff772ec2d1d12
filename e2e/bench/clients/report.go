package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/restripe/restripe/e2e/bench/provenance"
)

const introduction = "Values a second of one gateway, as `restripe up` starts it over %d nodes, beside a plain Redis and a plain " +
	"memcached (one process, no copies, nothing on disk), and twemproxy before each. All of it, and who loads it, is on one machine. " +
	"Loads of Redis are `redis-benchmark`'s, keys drawn from %d; those of memcached and HTTP a client in Go. Targets take turns. " +
	"Told are the median of the rounds and, in brackets, the slowest.\n\n"

// report is the page.
func report(source provenance.Facts, hasProxy bool, rows []row) string {
	var b strings.Builder
	b.WriteString("# Clients of Redis, memcached and HTTP\n\n")
	fmt.Fprintf(&b, introduction, agents, keys)
	if !hasProxy {
		b.WriteString("twemproxy was not installed (`nutcracker` in Debian).\n\n")
	}
	b.WriteString(source.List("other work on the machine"))
	b.WriteString("\n| protocol | load | gateway, a second | p50 ms | peer | a second | p50 ms | gateway to peer |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		ours := r.rates["gateway"]
		for _, name := range r.names {
			if name == "gateway" && len(r.names) > 1 {
				continue
			}
			peer := r.rates[name]
			other, ratio := "-", "-"
			if name != "gateway" {
				other = told(peer)
				ratio = fmt.Sprintf("%.2f", median(ours.perSecond)/median(peer.perSecond))
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %.2f | %s | %s | %.2f | %s |\n", r.protocol, r.what, told(ours), median(ours.p50), name, other,
				median(peer.p50), ratio)
		}
	}
	return b.String()
}

// told is the median of what a target did, and the slowest round.
func told(r *rates) string {
	return fmt.Sprintf("%.0f (%.0f)", median(r.perSecond), slices.Min(r.perSecond))
}

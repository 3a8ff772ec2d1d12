//go:build linux && ceph

package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/e2e/bench/provenance"
)

func TestParsePerformance(t *testing.T) {
	const text = `{
		"AsyncMessenger::Worker-0": {"msgr_send_bytes": 100, "msgr_recv_bytes": 10, "msgr_running_send_time": 0.5},
		"AsyncMessenger::Worker-1": {"msgr_send_bytes": 23, "msgr_recv_bytes": 4},
		"bluestore": {"bluestore_write_big_bytes": 4096, "bluestore_write_small_bytes": 7, "bluestore_allocated": 65536, "kv_flush_lat": {"avgcount": 1}},
		"osd": {"op": 3}}`
	got, err := parsePerformance([]byte(text))
	if want := (usage{written: 4103, sent: 123, received: 14, allocated: 65536}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, text := range []string{``, `{}`, `{"bluestore": {"bluestore_write_big_bytes": 1, "bluestore_write_small_bytes": 1, "bluestore_allocated": 1}}`,
		`{"AsyncMessenger::Worker-0": {"msgr_send_bytes": 100, "msgr_recv_bytes": 10}}`} {
		if _, err := parsePerformance([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestParseCounters(t *testing.T) {
	if n, err := parseDiskReads("rchar: 9\nread_bytes: 4096\nwrite_bytes: 1\n"); n != 4096 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := parseDiskReads("rchar: 9\n"); err == nil {
		t.Error("nothing was read as a number")
	}
	device := "Inter-|   Receive\n face |bytes\n    lo: 11 1 0 0 0 0 0 0 22 1 0 0 0 0 0 0\n  eth0: 1 1 0 0 0 0 0 0 2 1 0 0 0 0 0 0\n"
	if n, err := parseLoopback(device); n != 22 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := parseLoopback("  eth0: 1 2\n"); err == nil {
		t.Error("another device was taken for lo")
	}
}

func TestReportSetsTheWaysSideBySide(t *testing.T) {
	o, err := parseOptions([]string{"-objects", "2", "-object-bytes", "1048576"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	osds := make([]usage, hosts)
	osds[3] = usage{read: 1 << 20, written: 3 << 20, sent: 4 << 20, received: 5 << 20}
	text := report(provenance.Facts{Command: o.command}, "16.2", o, []step{
		{way: wayNative, change: "4+2 -> 6+2", elapsed: time.Second, osds: osds, clients: 2 << 20, loopback: 8 << 20, extra: 6 << 20},
		{way: wayNative, change: "6+2 -> 12+2", osds: osds},
		{way: wayRestripe, change: "4+2 -> 6+2", osds: osds, agents: 1 << 20},
	})
	for _, want := range []string{
		"| 4+2 -> 6+2  | Ceph: new pool, copy | 1.0 | 0.50 |    1.50 |          3.00 |      2.00 |          2.50 |     4.00 |        3.00 |\n| 4+2 -> 6+2  | Restripe ",
		"| 0.0 | 0.50 |    1.50 |          0.50 |",
		"2 of 1 MiB", "- command: `go run -tags ceph ./e2e/bench/ceph -objects 2 -object-bytes 1048576`",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, line := range []string{"-objects 0", "-object-bytes 1", "more", "-no-such"} {
		if _, err := parseOptions(strings.Fields(line), io.Discard); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/gateway/api"
)

// wire is what agents have read and written since they started on connections to the gateway and to each other: what the system
// counts for their processes, less what their stores say has come and gone. What one agent sends another counts at both, which
// is taken off for compaction. TLS and the messages' own overhead are in it, and what agents read of files, which is little.
func (c *cluster) wire(ctx context.Context) (total int64, err error) {
	pids := c.Pids()
	for _, member := range c.Members() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pids[member.ID]))
		if err != nil {
			return 0, fmt.Errorf("asking what the agent of %s has read and written: %w", member.ID, err)
		}
		moved, err := parseTraffic(string(text))
		if err != nil {
			return 0, err
		}
		_, address, _ := strings.Cut(member.Store, "://")
		counts, err := storeCounts(ctx, address)
		if err != nil {
			return 0, fmt.Errorf("asking the store of %s: %w", member.ID, err)
		}
		total += moved - counts["bytes_read"] - counts["bytes_written"]
	}
	return total, nil
}

// parseTraffic reads what a process has read and written, of sockets too, in /proc/PID/io.
func parseTraffic(text string) (total int64, err error) {
	found := 0
	for line := range strings.Lines(text) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); name == "rchar" || name == "wchar" {
			bytes, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return 0, err
			}
			total, found = total+bytes, found+1
		}
	}
	if found != 2 {
		return 0, errors.New("the system does not say what a process has read and written")
	}
	return total, nil
}

// compactAll moves all that can be given back, whatever the classes allow to be dead, and waits for that. A class that is never compacted
// stays as it is.
func (c *cluster) compactAll(ctx context.Context) (done api.Compaction, err error) {
	begun, err := c.gateway.StartCompaction(ctx, api.CompactionRequest{Everything: true})
	if err != nil {
		return done, err
	}
	err = patiently(ctx, func() (bool, error) {
		done, err = c.gateway.Compaction(ctx)
		return done.Pass > begun.Pass || done.Pass == begun.Pass && done.Finished != nil, err
	})
	switch {
	case err != nil:
		return done, err
	case done.Pass != begun.Pass || done.Failed > 0:
		return done, fmt.Errorf("pass %d of a compaction was begun, and pass %d left %d groups: %s", begun.Pass, done.Pass, done.Failed,
			done.Error)
	}
	return done, nil
}

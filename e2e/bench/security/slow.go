package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
)

// slowKind is a way to be slow: what a client sends at first, and how many bytes it sends each second after that, or takes.
type slowKind struct {
	name    string
	head    string
	sends   bool
	perRead int // bytes that it takes each second
}

// head is the head of a request with so many bytes of body.
func head(method, target string, body int) string {
	return fmt.Sprintf("%s /v1/objects/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", method, target, body)
}

const largeBytes = 64 << 20

func (b *bench) kindsOfSlow() []slowKind {
	return []slowKind{
		{name: "nobody"},
		{name: "readers at 16 KiB/s", head: head("GET", "large", 0), perRead: 16 << 10},
		{name: "readers that take nothing", head: head("GET", "large", 0)},
		{name: "puts of 64 MiB at 1 B/s", head: head("PUT", "slow", largeBytes), sends: true},
		{name: "puts of 60 KiB at 1 B/s", head: head("PUT", "slow", 60<<10), sends: true},
		{name: "patches of 60 MiB at 1 B/s", head: head("PATCH", "large?offset=0", 60<<20), sends: true},
		{name: "connections that say nothing, 10,000 in all"},
	}
}

// slowClients measures the requests of others beside slow clients.
func (b *bench) slowClients(ctx context.Context) (_ string, err error) {
	c, err := b.start(ctx, "slow", false)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	large := make([]byte, largeBytes)
	if _, err := c.client.Put(ctx, "large", bytes.NewReader(large), client.PutOptions{Size: largeBytes, SizeKnown: true}); err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "## Slow clients\n\nA client alone puts 60 kB, reads it, puts 1 MiB, reads it and updates 5 bytes, again and again "+
		"for 15 s, beside %d slow clients of one kind. Milliseconds of each kind of request, 99th percentile (slowest), and the most "+
		"memory the gateway had, in MiB, without the pages of its program.\n\n", b.slow)
	text.WriteString("| beside | put 60 kB | get 60 kB | put 1 MiB | get 1 MiB | update | refused or failed | memory |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, kind := range b.kindsOfSlow() {
		row, err := b.beside(ctx, c, kind)
		if err != nil {
			return "", fmt.Errorf("beside %s: %w", kind.name, err)
		}
		text.WriteString(row)
	}
	return text.String(), nil
}

func (b *bench) beside(ctx context.Context, c *cluster, kind slowKind) (string, error) {
	within, stop := context.WithCancel(ctx)
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer stop()
	count := b.slow
	switch {
	case kind.name == "nobody":
		count = 0
	case kind.head == "":
		count = 10_000
	}
	for range count {
		conn, err := net.Dial("tcp", c.Gateway())
		if err != nil {
			return "", err
		}
		crowd.Go(func() { dawdle(within, conn, kind) })
	}
	small, middle := make([]byte, 60_000), make([]byte, objectBytes)
	put := func(key string, data []byte) error {
		_, err := c.client.Put(ctx, key, bytes.NewReader(data), client.PutOptions{Size: int64(len(data)), SizeKnown: true})
		return err
	}
	get := func(key string) error {
		content, err := c.client.Get(ctx, key, client.Range{})
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, content)
		return errors.Join(err, content.Close())
	}
	requests := []func() error{
		func() error { return put("small", small) }, func() error { return get("small") },
		func() error { return put("middle", middle) }, func() error { return get("middle") },
		func() error {
			_, err := c.client.Update(ctx, "middle", 100, strings.NewReader("hello"), 5)
			return err
		},
	}
	took := make([][]time.Duration, len(requests))
	failed := 0
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end) && ctx.Err() == nil; {
		for i, request := range requests {
			began := time.Now()
			if err := request(); err != nil {
				failed++
				fmt.Fprintln(os.Stderr, kind.name, ":", err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	memory, err := peak(c.Pids()[launch.GatewayName])
	if err != nil {
		return "", err
	}
	row := "| " + kind.name
	for _, list := range took {
		slices.Sort(list)
		row += fmt.Sprintf(" | %.1f (%.0f)", milliseconds(list[len(list)*99/100]), milliseconds(list[len(list)-1]))
	}
	return fmt.Sprintf("%s | %d | %d |\n", row, failed, memory>>20), ctx.Err()
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// dawdle is one slow client until ctx ends, or the gateway ends it.
func dawdle(ctx context.Context, conn net.Conn, kind slowKind) {
	defer conn.Close()                                      //nolint:errcheck // nobody is to be told
	stop := context.AfterFunc(ctx, func() { conn.Close() }) //nolint:errcheck // as above
	defer stop()
	if _, err := io.WriteString(conn, kind.head); err != nil {
		return
	}
	reader := bufio.NewReaderSize(conn, 16)
	taken := make([]byte, kind.perRead)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var err error
		if kind.sends {
			_, err = conn.Write([]byte{1})
		} else if kind.perRead > 0 {
			_, err = io.ReadFull(reader, taken)
		}
		if err != nil {
			return
		}
	}
}

// peak is the most resident memory that a process had, in bytes, since this was asked last, but for the pages of its program,
// which the system can drop.
func peak(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	kilobytes := map[string]int64{}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[2] == "kB" {
			if kilobytes[fields[0]], err = strconv.ParseInt(fields[1], 10, 64); err != nil {
				return 0, err
			}
		}
	}
	most := kilobytes["VmHWM:"] - kilobytes["RssFile:"]
	if most <= 0 {
		return 0, errors.New("the system does not say how much memory a process has")
	}
	return most << 10, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o200)
}

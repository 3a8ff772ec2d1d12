package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	count   int // how many there are, 0 for as many as the bench is told
}

// head is the head of a request with so many bytes of body.
func head(method, target string, body int) string {
	return fmt.Sprintf("%s /v1/objects/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", method, target, body)
}

const largeBytes = 64 << 20

var slowKinds = []slowKind{
	{name: "readers at 16 KiB/s", head: head("GET", "large", 0), perRead: 16 << 10},
	{name: "readers that take nothing", head: head("GET", "large", 0)},
	{name: "puts of 64 MiB at 1 B/s", head: head("PUT", "slow", largeBytes), sends: true},
	{name: "puts of 60 KiB at 1 B/s", head: head("PUT", "slow", 60<<10), sends: true},
	{name: "patches of 60 MiB at 1 B/s", head: head("PATCH", "large?offset=0", 60<<20), sends: true},
	{name: "connections that say nothing, 10,000 in all", count: 10_000},
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
	fmt.Fprintf(&text, "## Slow clients\n\nA client alone puts 60 kB, reads it, puts 1 MiB, reads it and updates 5 bytes, again and again, "+
		"in %d turns of %.0f s beside nobody and as many beside %d slow clients of one kind, which are another process of the lowest "+
		"priority, as if they were elsewhere. Milliseconds of each kind of request, 99th percentile (slowest) beside them, after that of "+
		"the turns beside nobody, and how many times as long that is; and the most memory the gateway had beside them, in MiB, without "+
		"the pages of its program.\n\n", besideTurns, besideTime.Seconds(), b.slow)
	text.WriteString("| beside | put 60 kB | get 60 kB | put 1 MiB | get 1 MiB | update | refused or failed | memory |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, kind := range slowKinds {
		row, err := b.beside(ctx, c, kind)
		if err != nil {
			return "", fmt.Errorf("beside %s: %w", kind.name, err)
		}
		text.WriteString(row)
	}
	return text.String(), nil
}

// Others are measured in so many turns of besideTime beside one kind of slow clients, and as many beside nobody.
const (
	besideTurns = 2
	besideTime  = 20 * time.Second
)

// beside is a row of the table.
func (b *bench) beside(ctx context.Context, c *cluster, kind slowKind) (string, error) {
	requests := c.requests()
	alone, crowded := newMeasured(len(requests)), newMeasured(len(requests))
	for range besideTurns {
		if err := alone.turn(ctx, c, requests, nil, 0); err != nil {
			return "", err
		}
		if err := crowded.turn(ctx, c, requests, &kind, cmp.Or(kind.count, b.slow)); err != nil {
			return "", err
		}
	}
	row := "| " + kind.name
	for i := range requests {
		before, _ := alone.times(i)
		with, slowest := crowded.times(i)
		row += fmt.Sprintf(" | %.1f to %.1f (%.0f), %.1fx", before, with, slowest, with/before)
	}
	return fmt.Sprintf("%s | %d | %d |\n", row, crowded.failed, crowded.memory>>20), ctx.Err()
}

// requests are those of the client that is measured, one after the other.
func (c *cluster) requests() []func(context.Context) error {
	small, middle := make([]byte, 60_000), make([]byte, objectBytes)
	put := func(key string, data []byte) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := c.client.Put(ctx, key, bytes.NewReader(data), client.PutOptions{Size: int64(len(data)), SizeKnown: true})
			return err
		}
	}
	get := func(key string) func(context.Context) error {
		return func(ctx context.Context) error {
			content, err := c.client.Get(ctx, key, client.Range{})
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, content)
			return errors.Join(err, content.Close())
		}
	}
	return []func(context.Context) error{
		put("small", small), get("small"), put("middle", middle), get("middle"),
		func(ctx context.Context) error {
			_, err := c.client.Update(ctx, "middle", 100, strings.NewReader("hello"), 5)
			return err
		},
	}
}

// measured is what requests took in the turns of one company.
type measured struct {
	took   [][]time.Duration // by request
	failed int
	memory int64 // the most that the gateway had, in bytes
}

func newMeasured(requests int) *measured { return &measured{took: make([][]time.Duration, requests)} }

// turn measures requests beside slow clients of a kind, or beside nobody if that is nil.
func (m *measured) turn(ctx context.Context, c *cluster, requests []func(context.Context) error, kind *slowKind, count int) (err error) {
	gateway := c.Pids()[launch.GatewayName]
	if _, err := peak(gateway); err != nil {
		return err
	}
	if kind != nil {
		leave, err := crowd(ctx, c.Gateway(), kind.name, count)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, leave()) }()
	}
	for end := time.Now().Add(besideTime); time.Now().Before(end) && ctx.Err() == nil; {
		for i, request := range requests {
			began := time.Now()
			if err := request(ctx); err != nil {
				m.failed++
				fmt.Fprintln(os.Stderr, err)
			}
			m.took[i] = append(m.took[i], time.Since(began))
		}
	}
	memory, err := peak(gateway)
	m.memory = max(m.memory, memory)
	return err
}

// times of a request: its 99th percentile and its slowest, in milliseconds.
func (m *measured) times(request int) (percentile, slowest float64) {
	list := slices.Sorted(slices.Values(m.took[request]))
	return milliseconds(list[len(list)*99/100]), milliseconds(list[len(list)-1])
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// crowd starts slow clients of a gateway in a process of their own, at the lowest priority, so that what is measured waits
// for the gateway and not for them, and returns when all are connected. leave ends them.
func crowd(ctx context.Context, gateway, kind string, count int) (leave func() error, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	clients := exec.CommandContext(ctx, program, asCrowd, gateway, kind, strconv.Itoa(count))
	clients.Stderr = os.Stderr
	stay, err := clients.StdinPipe()
	if err != nil {
		return nil, err
	}
	said, err := clients.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := clients.Start(); err != nil {
		return nil, err
	}
	leave = func() error { return errors.Join(stay.Close(), clients.Wait()) }
	if _, err := said.Read(make([]byte, 1)); err != nil {
		return nil, errors.Join(fmt.Errorf("slow clients did not connect: %w", err), leave())
	}
	return leave, nil
}

// asCrowd is the first argument of the process of slow clients; the gateway, the name of their kind and their count follow.
const asCrowd = "crowd"

// beCrowd is that process: it connects them, says so by a byte, and keeps them until its input ends.
func beCrowd(gateway, name, count string) error {
	number, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	kind := slowKinds[slices.IndexFunc(slowKinds, func(k slowKind) bool { return k.name == name })]
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		return err
	}
	for i := range number {
		conn, err := net.Dial("tcp", gateway)
		if err != nil {
			return err
		}
		// Not all in the same moment, which would be a client of another kind.
		go dawdle(conn, kind, time.Second*time.Duration(i)/time.Duration(number))
	}
	if _, err := os.Stdout.Write([]byte{1}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// dawdle is one slow client, until the gateway ends it or the process ends.
func dawdle(conn net.Conn, kind slowKind, after time.Duration) {
	defer conn.Close() //nolint:errcheck // nobody is to be told
	if _, err := io.WriteString(conn, kind.head); err != nil {
		return
	}
	if !kind.sends && kind.perRead == 0 {
		select {}
	}
	<-time.After(after)
	reader := bufio.NewReaderSize(conn, 16)
	taken := make([]byte, kind.perRead)
	for range time.Tick(time.Second) {
		var err error
		if kind.sends {
			_, err = conn.Write([]byte{1})
		} else {
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

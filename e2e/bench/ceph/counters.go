//go:build linux && ceph

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// usage is what one OSD has done since it started, bytes.
type usage struct {
	read      int64 // from its disk
	written   int64 // by its store, as data; without its log
	sent      int64 // by its messenger: to clients, agents, other OSDs and monitors
	received  int64
	allocated int64 // a level: what its store has given to data
}

func (u usage) minus(other usage) usage {
	return usage{u.read - other.read, u.written - other.written, u.sent - other.sent, u.received - other.received, u.allocated - other.allocated}
}

func (u usage) plus(other usage) usage {
	return usage{u.read + other.read, u.written + other.written, u.sent + other.sent, u.received + other.received, u.allocated + other.allocated}
}

// total sums up what all OSDs did.
func total(all []usage) (sum usage) {
	for _, u := range all {
		sum = sum.plus(u)
	}
	return sum
}

// parsePerformance reads what `perf dump` of an OSD prints.
func parsePerformance(text []byte) (u usage, err error) {
	var sections map[string]map[string]json.RawMessage
	if err := json.Unmarshal(text, &sections); err != nil {
		return u, fmt.Errorf("reading performance counters: %w", err)
	}
	number := func(section, name string) int64 {
		value, failed := strconv.ParseInt(string(sections[section][name]), 10, 64)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("reading the performance counter %s.%s: %w", section, name, failed))
		}
		return value
	}
	u.written = number("bluestore", "bluestore_write_big_bytes") + number("bluestore", "bluestore_write_small_bytes")
	u.allocated = number("bluestore", "bluestore_allocated")
	messengers := 0
	for name := range sections {
		if strings.HasPrefix(name, "AsyncMessenger::Worker") {
			messengers++
			u.sent += number(name, "msgr_send_bytes")
			u.received += number(name, "msgr_recv_bytes")
		}
	}
	if messengers == 0 {
		err = errors.Join(err, errors.New("reading performance counters: there are none of a messenger"))
	}
	return u, err
}

// parseDiskReads reads read_bytes of /proc/PID/io.
func parseDiskReads(text string) (int64, error) {
	for line := range strings.Lines(text) {
		if value, is := strings.CutPrefix(line, "read_bytes: "); is {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, errors.New("reading what a process read: there is no read_bytes")
}

// parseLoopback reads the bytes that lo of /proc/net/dev has sent.
func parseLoopback(text string) (int64, error) {
	for line := range strings.Lines(text) {
		name, values, found := strings.Cut(line, ":")
		if fields := strings.Fields(values); found && strings.TrimSpace(name) == "lo" && len(fields) > 8 {
			return strconv.ParseInt(fields[8], 10, 64)
		}
	}
	return 0, errors.New("reading the counters of devices: there is no lo")
}

// loopback returns the bytes that anybody has sent over loopback, headers included.
func loopback() (int64, error) {
	text, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		return 0, fmt.Errorf("reading the counters of devices: %w", err)
	}
	return parseLoopback(string(text))
}

// counters reads what the OSDs of a cluster do, past their messengers, so that looking leaves no trace in what is seen.
type counters struct {
	sockets []string // the OSDs' own, in their order
	pids    []int
}

// newCounters finds the processes of the OSDs by the configuration that they were started with.
func newCounters(config string, osds int) (*counters, error) {
	c := &counters{pids: make([]int, osds)}
	for id := range osds {
		c.sockets = append(c.sockets, filepath.Join(filepath.Dir(config), "run", fmt.Sprintf("osd.%d.asok", id)))
	}
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		words := strings.Split(string(bytes.TrimRight(text, "\x00")), "\x00")
		at := slices.Index(words, "-i")
		if filepath.Base(words[0]) != "ceph-osd" || !slices.Contains(words, config) || at < 0 || at+1 == len(words) {
			continue
		}
		id, err := strconv.Atoi(words[at+1])
		if err != nil || id >= osds {
			continue
		}
		if c.pids[id], err = strconv.Atoi(filepath.Base(filepath.Dir(path))); err != nil {
			return nil, err
		}
	}
	if id := slices.Index(c.pids, 0); id >= 0 {
		return nil, fmt.Errorf("no process of osd.%d was found", id)
	}
	return c, nil
}

// read returns what each OSD has done.
func (c *counters) read() ([]usage, error) {
	all := make([]usage, len(c.pids))
	for id, pid := range c.pids {
		text, err := askSocket(c.sockets[id], `{"prefix":"perf dump"}`)
		if err != nil {
			return nil, fmt.Errorf("asking osd.%d for its counters: %w", id, err)
		}
		if all[id], err = parsePerformance(text); err != nil {
			return nil, fmt.Errorf("osd.%d: %w", id, err)
		}
		disk, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "io"))
		if err != nil {
			return nil, fmt.Errorf("osd.%d: %w", id, err)
		}
		if all[id].read, err = parseDiskReads(string(disk)); err != nil {
			return nil, fmt.Errorf("osd.%d: %w", id, err)
		}
	}
	return all, nil
}

// socketPatience bounds one question to a daemon's own socket.
const socketPatience = 20 * time.Second

// askSocket asks a daemon through its own socket: the question with a zero byte; a length of four bytes and the answer.
func askSocket(path, question string) (answer []byte, err error) {
	socket, err := net.DialTimeout("unix", path, socketPatience)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, socket.Close()) }()
	if err := socket.SetDeadline(time.Now().Add(socketPatience)); err != nil {
		return nil, err
	}
	if _, err := socket.Write([]byte(question + "\x00")); err != nil {
		return nil, err
	}
	var length uint32
	if err := binary.Read(socket, binary.BigEndian, &length); err != nil {
		return nil, err
	}
	if length > longestAnswer {
		return nil, fmt.Errorf("an answer of %d bytes", length)
	}
	answer = make([]byte, length)
	_, err = io.ReadFull(socket, answer)
	return answer, err
}

// longestAnswer bounds an answer, bytes.
const longestAnswer = 16 << 20

// How long OSDs must rest to be at rest, how much may still move then, and how long that is waited for.
const (
	restEvery    = time.Second
	restBytes    = 2 << 20
	restPatience = 2 * time.Minute
)

// settled waits until the OSDs are at rest, and returns what they have done.
func (c *counters) settled(ctx context.Context) ([]usage, error) {
	before, err := c.read()
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(restEvery)
	defer ticker.Stop()
	for deadline := time.Now().Add(restPatience); ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		now, err := c.read()
		if err != nil {
			return nil, err
		}
		moved := total(now).minus(total(before))
		if moved.read+moved.written+max(moved.allocated, -moved.allocated)+moved.sent < restBytes {
			return now, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the OSDs are not at rest after %s: %+v", restPatience, moved)
		}
		before = now
	}
}

// peak watches how much is allocated, until stopped.
type peak struct {
	quit  chan struct{}
	ended sync.WaitGroup
	most  int64
	err   error
}

// sampleEvery is the time between two looks at what is allocated.
const sampleEvery = 200 * time.Millisecond

func (c *counters) watch() *peak {
	p := &peak{quit: make(chan struct{})}
	p.ended.Go(func() {
		ticker := time.NewTicker(sampleEvery)
		defer ticker.Stop()
		for {
			select {
			case <-p.quit:
				return
			case <-ticker.C:
				now, err := c.read()
				if err != nil {
					p.err = err
					return
				}
				p.most = max(p.most, total(now).allocated)
			}
		}
	})
	return p
}

func (p *peak) stop() (int64, error) {
	close(p.quit)
	p.ended.Wait()
	return p.most, p.err
}

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"
)

const (
	keys    = 10_000 // among how many a load draws
	fillers = 50     // clients that put all of them
)

// load is what many clients of redis-benchmark do for a while.
type load struct {
	clients, pipeline, bytes int
	isPut                    bool
}

// redisLoad has redis-benchmark load a server for about so many seconds.
func redisLoad(ctx context.Context, address string, l load, seconds float64) (o outcome, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return o, err
	}
	test := "get"
	if l.isPut {
		test = "set"
	}
	enough := time.Duration(seconds * 0.75 * float64(time.Second))
	requests := 200 * l.clients
	for {
		command := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-t", test, "-c", strconv.Itoa(l.clients),
			"-P", strconv.Itoa(l.pipeline), "-d", strconv.Itoa(l.bytes), "-r", strconv.Itoa(keys), "-n", strconv.Itoa(requests), "--csv")
		began := time.Now()
		output, err := command.Output()
		if err != nil {
			return o, fmt.Errorf("redis-benchmark: %w", err)
		}
		took := time.Since(began)
		o.operations += requests
		if o.perSecond, o.all, err = parseRedisBenchmark(output); err != nil || took >= enough {
			return o, err
		}
		requests = max(2*requests, int(o.perSecond*seconds))
	}
}

// parseRedisBenchmark reads the table of redis-benchmark: test, requests a second, and milliseconds on average, at least, at the 50th, 95th
// and 99th percentile, and at most.
func parseRedisBenchmark(output []byte) (perSecond float64, t timing, err error) {
	rows, err := csv.NewReader(bytes.NewReader(output)).ReadAll()
	if err != nil || len(rows) < 2 || len(rows[len(rows)-1]) < 7 {
		return 0, t, fmt.Errorf("redis-benchmark answered %q: %w", output, err)
	}
	fields := rows[len(rows)-1]
	for column, into := range map[int]*float64{1: &perSecond, 2: &t.mean, 4: &t.p50, 6: &t.p99} {
		if *into, err = strconv.ParseFloat(fields[column], 64); err != nil {
			return 0, t, fmt.Errorf("redis-benchmark answered %q: %w", output, err)
		}
	}
	return perSecond, t, nil
}

// keyOf is a key as redis-benchmark names it.
func keyOf(i int) string { return fmt.Sprintf("key:%012d", i) }

// fill has every key of redis-benchmark put.
func fill(connect connector, size int) error {
	value := bytes.Repeat([]byte("x"), size)
	return byClients(fillers, keys, connect, func(s session, i int, _ []byte) ([]byte, error) { return nil, s.set(keyOf(i), value) })
}

// gets has clients get these keys, of values that have so many bytes.
func gets(ctx context.Context, clients int, seconds float64, size int, connect connector) (outcome, error) {
	return forSeconds(ctx, clients, seconds, connect, func(s session, client, i int) (time.Duration, bool, error) {
		key := keyOf((client + i*7919) % keys)
		began := time.Now()
		value, err := s.get(key)
		took := time.Since(began)
		if err == nil && len(value) != size {
			err = fmt.Errorf("%s has %d bytes, %d were put", key, len(value), size)
		}
		return took, false, err
	})
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// keys is among how many a load draws.
const keys = 10_000

// load is what many clients do for a while.
type load struct {
	clients, pipeline, bytes int
	isPut                    bool
}

// redisLoad has redis-benchmark load a server, and returns commands a second and the median milliseconds of one.
func redisLoad(ctx context.Context, address string, l load, seconds int) (perSecond, p50 float64, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, 0, err
	}
	test := "get"
	if l.isPut {
		test = "set"
	}
	requests := 2000 * l.clients
	for {
		command := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-t", test, "-c", strconv.Itoa(l.clients),
			"-P", strconv.Itoa(l.pipeline), "-d", strconv.Itoa(l.bytes), "-r", strconv.Itoa(keys), "-n", strconv.Itoa(requests), "--csv")
		began := time.Now()
		output, err := command.Output()
		if err != nil {
			return 0, 0, fmt.Errorf("redis-benchmark: %w", err)
		}
		rows, err := csv.NewReader(bytes.NewReader(output)).ReadAll()
		if err != nil || len(rows) == 0 || len(rows[len(rows)-1]) < 5 {
			return 0, 0, fmt.Errorf("redis-benchmark answered %q: %w", output, err)
		}
		row := rows[len(rows)-1]
		perSecond, err = strconv.ParseFloat(row[1], 64)
		if err == nil {
			p50, err = strconv.ParseFloat(row[4], 64)
		}
		took := time.Since(began)
		if err != nil || took >= time.Duration(seconds)*time.Second*3/4 {
			return perSecond, p50, err
		}
		requests = max(2*requests, int(perSecond)*seconds)
	}
}

// fill has every key of redis-benchmark put, one by one as clients would.
func fill(ctx context.Context, put func(ctx context.Context, key string, value []byte) error, size int) error {
	value := bytes.Repeat([]byte("x"), size)
	var work errgroup.Group
	var next atomic.Int64
	for range 50 {
		work.Go(func() error {
			for i := next.Add(1) - 1; i < keys; i = next.Add(1) - 1 {
				if err := put(ctx, keyOf(int(i)), value); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return work.Wait()
}

// keyOf is a key as redis-benchmark names it.
func keyOf(i int) string { return fmt.Sprintf("key:%012d", i) }

// exchange asks for a key once, over a connection of its own.
type exchange func(key string) error

// connLoad has clients ask one after the other, each as fast as it is answered.
func connLoad(ctx context.Context, clients, seconds int, connect func() (exchange, io.Closer, error)) (perSecond, p50 float64, err error) {
	ctx, stop := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer stop()
	took := make([][]float64, clients)
	var work errgroup.Group
	began := time.Now()
	for c := range clients {
		work.Go(func() (err error) {
			ask, conn, err := connect()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, conn.Close()) }()
			for i := c; ctx.Err() == nil; i += 7919 {
				at := time.Now()
				if err := ask(keyOf(i % keys)); err != nil {
					return err
				}
				took[c] = append(took[c], float64(time.Since(at).Microseconds())/1000)
			}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return 0, 0, err
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	return float64(len(all)) / time.Since(began).Seconds(), all[len(all)/2], nil
}

// memcachedGets connects to a memcached, or what speaks like one.
func memcachedGets(address string) func() (exchange, io.Closer, error) {
	return func() (exchange, io.Closer, error) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return nil, nil, err
		}
		reader := bufio.NewReader(conn)
		return func(key string) error {
			if _, err := io.WriteString(conn, "get "+key+"\r\n"); err != nil {
				return err
			}
			line, err := reader.ReadString('\n')
			if err != nil {
				return err
			}
			fields := strings.Fields(line)
			if len(fields) != 4 {
				return fmt.Errorf("get %s is answered by %q", key, line)
			}
			size, err := strconv.Atoi(fields[3])
			if err == nil {
				_, err = reader.Discard(size + len("\r\nEND\r\n"))
			}
			return err
		}, conn, nil
	}
}

// memcachedPut stores a value in a memcached.
func memcachedPut(address string) func(ctx context.Context, key string, value []byte) error {
	return func(_ context.Context, key string, value []byte) (err error) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, conn.Close()) }()
		if _, err := fmt.Fprintf(conn, "set %s 0 0 %d\r\n%s\r\n", key, len(value), value); err != nil {
			return err
		}
		answer, err := bufio.NewReader(conn).ReadString('\n')
		if err == nil && answer != "STORED\r\n" {
			err = fmt.Errorf("set %s is answered by %q", key, answer)
		}
		return err
	}
}

// httpGets asks a gateway over HTTP.
func httpGets(address string) func() (exchange, io.Closer, error) {
	return func() (exchange, io.Closer, error) {
		transport := &http.Transport{}
		client := &http.Client{Transport: transport}
		return func(key string) (err error) {
			answer, err := client.Get("http://" + address + "/v1/objects/" + key)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, answer.Body.Close()) }()
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: %s", key, answer.Status)
			}
			_, err = io.Copy(io.Discard, answer.Body)
			return err
		}, idle{transport}, nil
	}
}

// idle closes the connections of a transport.
type idle struct{ transport *http.Transport }

// Close closes them.
func (i idle) Close() error {
	i.transport.CloseIdleConnections()
	return nil
}

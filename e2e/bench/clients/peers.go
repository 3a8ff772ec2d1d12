package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// peers are the servers that a gateway is compared with, each of one process.
type peers struct {
	redis, memcached           string
	redisProxy, memcachedProxy string // empty: twemproxy is not installed
	processes                  []*exec.Cmd
}

func (p *peers) hasProxy() bool { return p.redisProxy != "" }

// start starts them on free ports of loopback.
func (p *peers) start(ctx context.Context, directory string) (err error) {
	if p.redis, err = p.run(ctx, func(port string) []string {
		return []string{"redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", directory}
	}); err != nil {
		return err
	}
	if p.memcached, err = p.run(ctx, func(port string) []string {
		return []string{"memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", "-m", "256", "-u", "root"}
	}); err != nil {
		return err
	}
	if _, err := exec.LookPath("nutcracker"); err != nil {
		return nil
	}
	proxy := func(name, server string, isRedis bool) (string, error) {
		return p.run(ctx, func(port string) []string {
			file := filepath.Join(directory, name+".yml")
			text := fmt.Sprintf("all:\n  listen: 127.0.0.1:%s\n  hash: fnv1a_64\n  distribution: ketama\n  redis: %t\n"+
				"  servers:\n   - %s:1\n", port, isRedis, server)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				return nil
			}
			stats, err := freePort()
			if err != nil {
				return nil
			}
			return []string{"nutcracker", "-c", file, "-s", stats, "-a", "127.0.0.1", "-o", filepath.Join(directory, name+".log")}
		})
	}
	if p.redisProxy, err = proxy("redis-proxy", p.redis, true); err != nil {
		return err
	}
	p.memcachedProxy, err = proxy("memcached-proxy", p.memcached, false)
	return err
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return strconv.Itoa(port), listener.Close()
}

// patience is how long a server may take to answer.
const patience = 30 * time.Second

// run starts a server and returns its address once it takes connections.
func (p *peers) run(ctx context.Context, arguments func(port string) []string) (string, error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	words := arguments(port)
	if len(words) == 0 {
		return "", errors.New("writing the configuration of twemproxy")
	}
	command := exec.Command(words[0], words[1:]...)
	if err := command.Start(); err != nil {
		return "", fmt.Errorf("starting %s: %w", words[0], err)
	}
	p.processes = append(p.processes, command)
	address := net.JoinHostPort("127.0.0.1", port)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return address, conn.Close()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return "", fmt.Errorf("%s does not answer at %s: %w", words[0], address, err)
		}
	}
}

func (p *peers) stop() (err error) {
	for _, process := range p.processes {
		err = errors.Join(err, process.Process.Signal(syscall.SIGTERM))
		_ = process.Wait() // how it ended says nothing
	}
	return err
}

// redisPut stores a value in a Redis.
func redisPut(address string) func(ctx context.Context, key string, value []byte) error {
	return func(_ context.Context, key string, value []byte) (err error) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, conn.Close()) }()
		_, err = fmt.Fprintf(conn, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(value), value)
		if err != nil {
			return err
		}
		answer, err := bufio.NewReader(conn).ReadString('\n')
		if err == nil && answer != "+OK\r\n" {
			err = fmt.Errorf("SET %s is answered by %q", key, answer)
		}
		return err
	}
}

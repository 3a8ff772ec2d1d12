package main

import (
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
	redisProxy, memcachedProxy string // before each of them; empty: twemproxy is not installed
	redisMany, memcachedMany   string // twemproxy before as many servers as a cluster has agents
	processes                  []*exec.Cmd
	pids                       map[string]int // by address
}

// connections is more than any part opens to a peer.
const connections = "20000"

func (p *peers) hasProxy() bool { return p.redisProxy != "" }

// start starts them on free ports of loopback.
func (p *peers) start(ctx context.Context, directory string) (err error) {
	redis := func(port string) []string {
		return []string{"redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", directory,
			"--maxclients", connections}
	}
	memcached := func(port string) []string {
		return []string{"memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", "-m", "256", "-c", connections, "-u", "root"}
	}
	if p.redis, err = p.run(ctx, redis); err != nil {
		return err
	}
	if p.memcached, err = p.run(ctx, memcached); err != nil {
		return err
	}
	if _, err := exec.LookPath("nutcracker"); err != nil {
		return nil
	}
	proxy := func(name string, isRedis bool, servers ...string) (string, error) {
		return p.run(ctx, func(port string) []string {
			file := filepath.Join(directory, name+".yml")
			text := fmt.Sprintf("all:\n  listen: 127.0.0.1:%s\n  hash: fnv1a_64\n  distribution: ketama\n  redis: %t\n  servers:\n", port, isRedis)
			for _, server := range servers {
				text += fmt.Sprintf("   - %s:1\n", server)
			}
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
	many := func(name string, isRedis bool, arguments func(port string) []string) (string, error) {
		servers := make([]string, agents)
		for i := range servers {
			var err error
			if servers[i], err = p.run(ctx, arguments); err != nil {
				return "", err
			}
		}
		return proxy(name, isRedis, servers...)
	}
	if p.redisProxy, err = proxy("redis-proxy", true, p.redis); err != nil {
		return err
	}
	if p.memcachedProxy, err = proxy("memcached-proxy", false, p.memcached); err != nil {
		return err
	}
	if p.redisMany, err = many("redis-many", true, redis); err != nil {
		return err
	}
	p.memcachedMany, err = many("memcached-many", false, memcached)
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
	if p.pids == nil {
		p.pids = map[string]int{}
	}
	p.pids[address] = command.Process.Pid
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

// empty has the servers forget all values, so that no part finds those of another in their memory.
func (p *peers) empty() error {
	for address, words := range map[string][2]string{p.redis: {"FLUSHALL", "+OK"}, p.memcached: {"flush_all", "OK"}} {
		s, err := dial(address)
		if err != nil {
			return err
		}
		_, _ = s.writer.WriteString(words[0] + "\r\n") // an error is that of the line
		line, err := s.line()
		if err = errors.Join(err, s.Close()); err != nil {
			return err
		}
		if line != words[1] {
			return fmt.Errorf("%s is answered by %q", words[0], line)
		}
	}
	return nil
}

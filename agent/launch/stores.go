package launch

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
	"strings"
	"time"
)

// StoreKind says what a node of the cluster keeps its blocks in.
type StoreKind string

const (
	StoreFile      StoreKind = "file"      // a directory
	StoreMemcached StoreKind = "memcached" // a memcached server; its contents end with it
	StoreRedis     StoreKind = "redis"     // a Redis server with an append-only file
	StoreCeph      StoreKind = "ceph"      // a pool of a Ceph cluster, which runs by itself
)

// ParseStoreKind reads a store kind.
func ParseStoreKind(text string) (StoreKind, error) {
	switch kind := StoreKind(text); kind {
	case StoreFile, StoreMemcached, StoreRedis, StoreCeph:
		return kind, nil
	}
	return "", fmt.Errorf("store %q: want file, memcached, redis or ceph", text)
}

// program is a server this package can run, and the Debian package that brings it.
type program struct{ name, debian string }

var (
	memcachedProgram = program{"memcached", "memcached"}
	redisProgram     = program{"redis-server", "redis-server"}
)

// find returns the path of the program, looking beside PATH where Debian puts servers.
func (p program) find() (string, error) {
	if path, err := exec.LookPath(p.name); err == nil {
		return path, nil
	}
	for _, directory := range []string{"/usr/bin", "/usr/sbin", "/usr/local/bin"} {
		if path, err := exec.LookPath(filepath.Join(directory, p.name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s, neither in PATH nor in /usr/bin; on Debian: apt-get install %s", ErrNoProgram, p.name, p.debian)
}

// memcachedMegabytes is the memory of one memcached server. Nothing is ever evicted (-M), a full server refuses.
const memcachedMegabytes = 256

// storeSpec describes the server of one node's store; ok is false for a store without a server.
func storeSpec(kind StoreKind, name, directory, log, address string) (s spec, ok bool, err error) {
	s = spec{name: name, log: log, address: address, movable: true}
	switch kind {
	case StoreMemcached:
		path, err := memcachedProgram.find()
		if err != nil {
			return s, false, err
		}
		s.command = func(address string) *exec.Cmd {
			_, port, _ := strings.Cut(address, ":")
			arguments := []string{"-l", "127.0.0.1", "-p", port, "-U", "0", "-m", strconv.Itoa(memcachedMegabytes), "-I", "8m", "-M", "-c", "1024", "-t", "1"}
			if os.Geteuid() == 0 {
				arguments = append(arguments, "-u", "root") // it refuses to guess a user when started by root
			}
			return exec.Command(path, arguments...)
		}
		s.probe = probeMemcached
	case StoreRedis:
		path, err := redisProgram.find()
		if err != nil {
			return s, false, err
		}
		s.command = func(address string) *exec.Cmd {
			_, port, _ := strings.Cut(address, ":")
			command := exec.Command(path, "--bind", "127.0.0.1", "--port", port, "--dir", directory, "--save", "",
				"--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction", "--daemonize", "no")
			command.Dir = directory
			return command
		}
		s.probe = probeRedis
	default:
		return s, false, nil
	}
	return s, true, nil
}

// storeURL is what the agent of a node is told.
func storeURL(kind StoreKind, directory, address string) string {
	switch kind {
	case StoreMemcached:
		return "memcached://" + address
	case StoreRedis:
		return "redis://" + address
	}
	return "file:" + directory
}

// probePatience bounds one question to a server.
const probePatience = time.Second

// errForeign says that another process than the one started answers.
var errForeign = errors.New("another process answers at the address")

// probeMemcached asks for the process id, so that a foreign server on the port is not taken for ours.
func probeMemcached(ctx context.Context, address string, pid int) error {
	return ask(ctx, address, "stats\r\n", "END", "STAT pid ", pid)
}

// probeRedis does the same; a server that still loads its append-only file is not ready.
func probeRedis(ctx context.Context, address string, pid int) error {
	if err := ask(ctx, address, "PING\r\n", "+PONG", "", 0); err != nil {
		return err
	}
	return ask(ctx, address, "INFO server\r\n", "config_file:", "process_id:", pid)
}

// ask sends a command and reads lines until one begins with last. The line that begins with field must give pid.
func ask(ctx context.Context, address, command, last, field string, pid int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	deadline, _ := ctx.Deadline()
	if err := connection.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := connection.Write([]byte(command)); err != nil {
		return err
	}
	found := field == ""
	lines := bufio.NewScanner(connection)
	for lines.Scan() {
		line := lines.Text()
		if text, is := strings.CutPrefix(line, field); is && field != "" {
			if text != strconv.Itoa(pid) {
				return fmt.Errorf("%w %s: process %s, not %d", errForeign, address, text, pid)
			}
			found = true
		}
		if strings.HasPrefix(line, last) {
			if !found {
				return fmt.Errorf("%s did not tell its process id", address)
			}
			return nil
		}
		if strings.HasPrefix(line, "-") {
			return fmt.Errorf("%s answers %s", address, line)
		}
	}
	return errors.Join(fmt.Errorf("%s hung up", address), lines.Err())
}

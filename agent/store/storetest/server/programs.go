package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"
)

// Memcached starts a memcached. args come after the program's own and may override them; by default it takes 64 MiB
// and evicts, as memcached does.
func Memcached(t testing.TB, args ...string) *Process {
	t.Helper()
	return start(t, "memcached", "memcached", func(port int) []string {
		all := []string{"-l", "127.0.0.1", "-p", strconv.Itoa(port), "-U", "0"}
		if os.Getuid() == 0 {
			all = append(all, "-u", "root")
		}
		return append(all, args...)
	}, func(ctx context.Context, addr string) error {
		return exchange(ctx, addr, "mn\r\n", "MN\r\n", "CLIENT_ERROR unauthenticated\r\n")
	})
}

// Redis starts a redis-server with a data directory of its own. args come after the program's own and may override
// them; by default it keeps nothing on disk.
func Redis(t testing.TB, args ...string) *Process {
	t.Helper()
	directory := t.TempDir()
	return start(t, "redis-server", "redis-server", func(port int) []string {
		return append([]string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", directory,
			"--save", "", "--daemonize", "no"}, args...)
	}, func(ctx context.Context, addr string) error {
		return exchange(ctx, addr, "PING\r\n", "+PONG\r\n", "-NOAUTH")
	})
}

// exchange sends request and wants an answer that begins with one of those given.
func exchange(ctx context.Context, addr, request string, answers ...string) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := connection.Write([]byte(request)); err != nil {
		return err
	}
	buffer := make([]byte, 256)
	count, err := connection.Read(buffer)
	if err != nil {
		return err
	}
	for _, answer := range answers {
		if count >= len(answer) && string(buffer[:len(answer)]) == answer {
			return nil
		}
	}
	return fmt.Errorf("%s answers %q", addr, buffer[:count])
}

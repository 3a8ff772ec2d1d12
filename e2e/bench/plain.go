//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/launch"
)

// newPlainClient connects to the servers of a cluster. The client keeps an object as one item on one server, with no
// protection, and is the peer of the data path. It serves one goroutine.
func newPlainClient(ctx context.Context, kind launch.StoreKind, addresses []string) (carrier, error) {
	if kind == launch.StoreRedis {
		return newPlainRedis(addresses)
	}
	return newPlainMemcached(ctx, addresses)
}

// serverOf deals keys to servers evenly; keys end in their number.
func serverOf(key string, servers int) int {
	number := 0
	for _, digit := range key[strings.LastIndexAny(key, "/")+1:] {
		number = number*10 + int(digit-'0')
	}
	return number % servers
}

type plainMemcached struct {
	connections []net.Conn
	streams     []*bufio.ReadWriter
}

func newPlainMemcached(ctx context.Context, addresses []string) (carrier, error) {
	c := &plainMemcached{}
	for _, address := range addresses {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connecting the plain client: %w", err), c.close())
		}
		c.connections = append(c.connections, connection)
		c.streams = append(c.streams, bufio.NewReadWriter(bufio.NewReader(connection), bufio.NewWriter(connection)))
	}
	return c, nil
}

func (c *plainMemcached) set(_ context.Context, key string, data []byte) error {
	stream := c.streams[serverOf(key, len(c.streams))]
	_, err := fmt.Fprintf(stream, "set %s 0 0 %d\r\n", key, len(data))
	if err == nil {
		_, err = stream.Write(data)
	}
	if err == nil {
		_, err = stream.WriteString("\r\n")
	}
	if err == nil {
		err = stream.Flush()
	}
	if err != nil {
		return fmt.Errorf("setting %s: %w", key, err)
	}
	return expectLine(stream, "STORED")
}

func (c *plainMemcached) get(_ context.Context, key string, data []byte) error {
	stream := c.streams[serverOf(key, len(c.streams))]
	_, err := fmt.Fprintf(stream, "get %s\r\n", key)
	if err == nil {
		err = stream.Flush()
	}
	if err != nil {
		return fmt.Errorf("getting %s: %w", key, err)
	}
	if err := expectLine(stream, fmt.Sprintf("VALUE %s 0 %d", key, len(data))); err != nil {
		return err
	}
	if _, err := io.ReadFull(stream, data); err != nil {
		return fmt.Errorf("getting %s: %w", key, err)
	}
	return errors.Join(expectLine(stream, ""), expectLine(stream, "END"))
}

// expectLine reads one line and refuses another than the one wanted.
func expectLine(stream *bufio.ReadWriter, want string) error {
	line, err := stream.ReadString('\n')
	if err != nil {
		return fmt.Errorf("reading memcached's answer: %w", err)
	}
	if line != want+"\r\n" {
		return fmt.Errorf("memcached answered %q, want %q", line, want)
	}
	return nil
}

func (c *plainMemcached) close() error {
	var errs []error
	for _, connection := range c.connections {
		errs = append(errs, connection.Close())
	}
	return errors.Join(errs...)
}

type plainRedis struct{ servers []rueidis.Client }

func newPlainRedis(addresses []string) (carrier, error) {
	c := &plainRedis{}
	for _, address := range addresses {
		server, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true, ForceSingleClient: true})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connecting the plain client: %w", err), c.close())
		}
		c.servers = append(c.servers, server)
	}
	return c, nil
}

func (c *plainRedis) set(ctx context.Context, key string, data []byte) error {
	server := c.servers[serverOf(key, len(c.servers))]
	if err := server.Do(ctx, server.B().Set().Key(key).Value(rueidis.BinaryString(data)).Build()).Error(); err != nil {
		return fmt.Errorf("setting %s: %w", key, err)
	}
	return nil
}

func (c *plainRedis) get(ctx context.Context, key string, data []byte) error {
	server := c.servers[serverOf(key, len(c.servers))]
	value, err := server.Do(ctx, server.B().Get().Key(key).Build()).AsBytes()
	if err != nil {
		return fmt.Errorf("getting %s: %w", key, err)
	}
	if copy(data, value) != len(data) || len(value) != len(data) {
		return fmt.Errorf("getting %s: %d bytes, want %d", key, len(value), len(data))
	}
	return nil
}

func (c *plainRedis) close() error {
	for _, server := range c.servers {
		server.Close()
	}
	return nil
}

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// session is one client, who asks for one thing after the other over a connection of its own.
type session interface {
	get(key string) ([]byte, error) // the value is the session's again at its next call
	set(key string, value []byte) error
	io.Closer
}

// connector opens sessions with one server.
type connector func() (session, error)

// stream is a connection whose protocol has lines and values of a known length.
type stream struct {
	net.Conn
	reader *bufio.Reader
	writer *bufio.Writer
	value  []byte
}

func dial(address string) (*stream, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &stream{Conn: conn, reader: bufio.NewReaderSize(conn, 4<<10), writer: bufio.NewWriterSize(conn, 4<<10)}, nil
}

// line sends what was written and reads a line of the answer, without its end.
func (s *stream) line() (string, error) {
	if err := s.writer.Flush(); err != nil {
		return "", err
	}
	line, err := s.reader.ReadString('\n')
	return strings.TrimSuffix(line, "\r\n"), err
}

// body reads a value of a length, and what stands behind it.
func (s *stream) body(length, behind int) ([]byte, error) {
	if cap(s.value) < length {
		s.value = make([]byte, length)
	}
	s.value = s.value[:length]
	if _, err := io.ReadFull(s.reader, s.value); err != nil {
		return nil, err
	}
	_, err := s.reader.Discard(behind)
	return s.value, err
}

// redisSession speaks RESP.
type redisSession struct{ *stream }

func redisAt(address string) connector {
	return func() (session, error) {
		s, err := dial(address)
		return redisSession{s}, err
	}
}

func (s redisSession) get(key string) ([]byte, error) {
	fmt.Fprintf(s.writer, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(key), key) // an error is that of the line
	line, err := s.line()
	if err != nil {
		return nil, err
	}
	length, is := strings.CutPrefix(line, "$")
	size, err := strconv.Atoi(length)
	if !is || err != nil || size < 0 {
		return nil, fmt.Errorf("GET %s is answered by %q", key, line)
	}
	return s.body(size, len("\r\n"))
}

func (s redisSession) set(key string, value []byte) error {
	fmt.Fprintf(s.writer, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n", len(key), key, len(value))
	_, _ = s.writer.Write(value) // an error is that of the line
	_, _ = s.writer.WriteString("\r\n")
	line, err := s.line()
	if err == nil && line != "+OK" {
		err = fmt.Errorf("SET %s is answered by %q", key, line)
	}
	return err
}

// memcachedSession speaks the text protocol of memcached.
type memcachedSession struct{ *stream }

func memcachedAt(address string) connector {
	return func() (session, error) {
		s, err := dial(address)
		return memcachedSession{s}, err
	}
}

func (s memcachedSession) get(key string) ([]byte, error) {
	fmt.Fprintf(s.writer, "get %s\r\n", key)
	line, err := s.line()
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(line)
	if len(fields) != 4 {
		return nil, fmt.Errorf("get %s is answered by %q", key, line)
	}
	size, err := strconv.Atoi(fields[3])
	if err != nil || size < 0 {
		return nil, fmt.Errorf("get %s is answered by %q", key, line)
	}
	return s.body(size, len("\r\nEND\r\n"))
}

func (s memcachedSession) set(key string, value []byte) error {
	fmt.Fprintf(s.writer, "set %s 0 0 %d\r\n", key, len(value))
	_, _ = s.writer.Write(value) // an error is that of the line
	_, _ = s.writer.WriteString("\r\n")
	line, err := s.line()
	if err == nil && line != "STORED" {
		err = fmt.Errorf("set %s is answered by %q", key, line)
	}
	return err
}

// httpSession speaks HTTP, as the gateway has it for itself, or as it is in S3.
type httpSession struct {
	base      string // of the URL of an object
	transport *http.Transport
	client    *http.Client
	sign      func(*http.Request) *http.Request // nil: requests are not signed
	value     bytes.Buffer
}

func httpAt(address string) connector {
	return func() (session, error) {
		transport := &http.Transport{DisableCompression: true}
		return &httpSession{base: "http://" + address + "/v1/objects/", transport: transport, client: &http.Client{Transport: transport}}, nil
	}
}

func (s *httpSession) get(key string) ([]byte, error) {
	err := s.ask(http.MethodGet, key, nil, http.StatusOK)
	return s.value.Bytes(), err
}

func (s *httpSession) set(key string, value []byte) error {
	return s.ask(http.MethodPut, key, value, http.StatusOK, http.StatusCreated)
}

// ask sends a request and reads the answer into value.
func (s *httpSession) ask(method, key string, body []byte, want ...int) (err error) {
	request, err := http.NewRequest(method, s.base+key, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if s.sign != nil {
		request = s.sign(request)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	s.value.Reset()
	if _, err := s.value.ReadFrom(answer.Body); err != nil {
		return err
	}
	for _, status := range want {
		if answer.StatusCode == status {
			return nil
		}
	}
	return fmt.Errorf("%s %s is answered by %s: %s", method, key, answer.Status, s.value.Bytes())
}

// Close implements session.
func (s *httpSession) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// byClients has so many sessions do everything from 0 to count, each the next one that is left. Each has a buffer of its own.
func byClients(many, count int, connect connector, do func(s session, i int, buffer []byte) ([]byte, error)) error {
	var clients errgroup.Group
	var next atomic.Int64
	for range many {
		clients.Go(func() (err error) {
			s, err := connect()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			var buffer []byte
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				if buffer, err = do(s, i, buffer); err != nil {
					next.Store(int64(count)) // the others need not go on
					return err
				}
			}
			return nil
		})
	}
	return clients.Wait()
}

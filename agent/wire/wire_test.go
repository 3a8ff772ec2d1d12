package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/restripe/restripe/agent/block"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server and returns its address.
func serve(t *testing.T, options ServerOptions, handler Handler) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := Listen(ctx, "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- NewServer(options).Serve(ctx, listener, handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return listener.Addr().String()
}

func dial(t *testing.T, address string, options ClientOptions) *Client {
	t.Helper()
	client := NewClientWith(address, options)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return client
}

// echo answers a Read with its payload and its first range.
func echo(_ context.Context, _ Op, header []byte, payload *Payload) (any, []byte, func(), error) {
	var request ReadRequest
	if err := Decode(header, &request); err != nil {
		return nil, nil, nil, err
	}
	return request, bytes.Clone(payload.Bytes), nil, nil
}

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func TestCallsShareOneConnection(t *testing.T) {
	address := serve(t, ServerOptions{}, echo)
	var traffic Traffic
	client := dial(t, address, ClientOptions{Concurrent: 16, Traffic: &traffic})
	ctx := within(t, 20*time.Second)
	var workers sync.WaitGroup
	for i := range 200 {
		workers.Go(func() {
			payload := bytes.Repeat([]byte{byte(i)}, i*997)
			request := ReadRequest{Ranges: []Range{{Unit: i}}}
			var reply ReadRequest
			got, err := client.Call(ctx, OpRead, request, payload, &reply)
			if err != nil || !bytes.Equal(got, payload) || len(reply.Ranges) != 1 || reply.Ranges[0].Unit != i {
				t.Errorf("call %d: %d bytes, %+v, %v", i, len(got), reply, err)
			}
			Recycle(got)
		})
	}
	workers.Wait()
	sent, received := client.Counters()
	if want := int64(997 * 199 * 200 / 2); sent < want || received < want || sent > want+100000 {
		t.Errorf("counted %d bytes sent and %d received for payloads of %d each way", sent, received, want)
	}
	traffic.Each(func(op Op, asked, answered int64) {
		if op == OpRead && (asked != sent || answered != received) || op != OpRead && asked+answered != 0 {
			t.Errorf("%s: counted %d bytes sent and %d received, where %d and %d are of all calls", op, asked, answered, sent, received)
		}
	})
}

// An answer that comes when its caller has given up counts for its operation too.
func TestLateAnswersAreCounted(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	address := serve(t, ServerOptions{}, func(_ context.Context, op Op, _ []byte, _ *Payload) (any, []byte, func(), error) {
		if op == OpRead {
			close(entered)
			<-release
			return nil, make([]byte, 5000), nil, nil
		}
		return nil, nil, nil, nil
	})
	var traffic Traffic
	client := dial(t, address, ClientOptions{Traffic: &traffic})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := client.Call(ctx, OpRead, ReadRequest{}, nil, nil)
		ended <- err
	}()
	<-entered
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("the call ends with %v", err)
	}
	close(release)
	for ctx, counted := within(t, 10*time.Second), int64(0); counted < 5000; {
		if _, err := client.Call(ctx, OpHello, HelloRequest{}, nil, nil); err != nil {
			t.Fatalf("%d bytes are counted of an answer of more than 5000: %v", counted, err)
		}
		traffic.Each(func(op Op, _, received int64) {
			if op == OpRead {
				counted = received
			}
		})
	}
}

func TestErrorsComeBackAsSentinels(t *testing.T) {
	var answer error
	var mutex sync.Mutex
	address := serve(t, ServerOptions{}, func(context.Context, Op, []byte, *Payload) (any, []byte, func(), error) {
		mutex.Lock()
		defer mutex.Unlock()
		return nil, nil, nil, answer
	})
	client := dial(t, address, ClientOptions{})
	for _, sentinel := range []error{
		ErrNotFound, ErrCorrupt, ErrFull, ErrTooLarge, ErrDown, ErrReadOnly, ErrAuth, ErrConflict, ErrUnregistered, ErrBadRequest, ErrUnsupported, ErrBusy, ErrInternal,
	} {
		mutex.Lock()
		answer = fmt.Errorf("reading disk 7: %w", sentinel)
		mutex.Unlock()
		_, err := client.Call(within(t, 5*time.Second), OpHello, HelloRequest{}, nil, nil)
		if !errors.Is(err, sentinel) || !bytes.Contains([]byte(err.Error()), []byte("reading disk 7")) {
			t.Errorf("%v came back as %v", sentinel, err)
		}
	}
	mutex.Lock()
	answer = errors.New("odd")
	mutex.Unlock()
	if _, err := client.Call(within(t, 5*time.Second), OpHello, HelloRequest{}, nil, nil); !errors.Is(err, ErrInternal) {
		t.Errorf("an error of no class came back as %v", err)
	}
}

// proxy passes connections on to an agent, and can break them.
type proxy struct {
	listener net.Listener
	target   string
	mutex    sync.Mutex
	conns    []net.Conn
	work     sync.WaitGroup
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target}
	p.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			other, err := net.Dial("tcp", target)
			if err != nil {
				conn.Close()
				continue
			}
			p.mutex.Lock()
			p.conns = append(p.conns, conn, other)
			p.mutex.Unlock()
			p.work.Go(func() { io.Copy(conn, other); conn.Close() })
			p.work.Go(func() { io.Copy(other, conn); other.Close() })
		}
	})
	t.Cleanup(func() { listener.Close(); p.drop(); p.work.Wait() })
	return p
}

// drop breaks every connection, and says how many there were.
func (p *proxy) drop() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	count := len(p.conns)
	for _, conn := range p.conns {
		conn.Close()
	}
	p.conns = nil
	return count
}

func TestDroppedConnectionsAreUnreachableAndRecover(t *testing.T) {
	p := newProxy(t, serve(t, ServerOptions{}, echo))
	client := dial(t, p.listener.Addr().String(), ClientOptions{})
	ctx := within(t, 20*time.Second)
	var good, broken int
	var mutex sync.Mutex
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			payload := make([]byte, 1<<16)
			for range 60 {
				got, err := client.Call(ctx, OpRead, ReadRequest{}, payload, nil)
				mutex.Lock()
				switch {
				case err == nil && len(got) == len(payload):
					good++
				case errors.Is(err, ErrUnreachable):
					broken++
				default:
					t.Errorf("%d bytes, %v; want an answer or ErrUnreachable", len(got), err)
				}
				if (good+broken)%40 == 0 {
					p.drop()
				}
				mutex.Unlock()
			}
		})
	}
	workers.Wait()
	if good < 100 || broken == 0 {
		t.Errorf("%d calls were answered and %d broken off; the test wants many of the first and some of the second", good, broken)
	}
}

func TestNobodyThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	if _, err := dial(t, address, ClientOptions{}).Call(within(t, 5*time.Second), OpHello, HelloRequest{}, nil, nil); !errors.Is(err, ErrUnreachable) {
		t.Fatalf("calling nobody: %v, want ErrUnreachable", err)
	}
}

// TestSilentPeerIsNoHang calls a peer that accepts and never answers.
func TestSilentPeerIsNoHang(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client := dial(t, listener.Addr().String(), ClientOptions{KeepAlive: 10 * time.Millisecond})
	if _, err := client.Call(context.Background(), OpHello, HelloRequest{}, nil, nil); !errors.Is(err, ErrUnreachable) {
		t.Fatalf("without a deadline: %v, want ErrUnreachable", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if _, err := client.Call(ctx, OpHello, HelloRequest{}, nil, nil); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnreachable) {
		t.Fatalf("with a deadline: %v", err)
	}
}

// TestSlowAnswerIsNoDeadPeer: pings keep a connection whose handler takes long.
func TestSlowAnswerIsNoDeadPeer(t *testing.T) {
	const period = 20 * time.Millisecond
	address := serve(t, ServerOptions{}, func(ctx context.Context, _ Op, _ []byte, _ *Payload) (any, []byte, func(), error) {
		select {
		case <-time.After(12 * period):
		case <-ctx.Done():
		}
		return nil, nil, nil, ctx.Err()
	})
	if _, err := dial(t, address, ClientOptions{KeepAlive: period}).Call(context.Background(), OpHello, HelloRequest{}, nil, nil); err != nil {
		t.Fatal(err)
	}
}

func TestCancelReachesTheHandler(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	address := serve(t, ServerOptions{}, func(ctx context.Context, op Op, _ []byte, _ *Payload) (any, []byte, func(), error) {
		if op == OpHello {
			return nil, nil, nil, nil
		}
		close(entered)
		<-ctx.Done()
		close(left)
		return nil, nil, nil, ctx.Err()
	})
	client := dial(t, address, ClientOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := client.Call(ctx, OpRun, RunRequest{}, nil, nil)
		ended <- err
	}()
	<-entered
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("the call ends with %v", err)
	}
	<-left
	if _, err := client.Call(within(t, 5*time.Second), OpHello, HelloRequest{}, nil, nil); err != nil {
		t.Fatalf("the connection does not survive a cancel: %v", err)
	}
}

func TestRequestsBeyondTheBudgetAreBusy(t *testing.T) {
	entered, goOn := make(chan struct{}, 8), make(chan struct{})
	address := serve(t, ServerOptions{RequestBytes: 100_000, Wait: 10 * time.Millisecond}, func(_ context.Context, op Op, _ []byte, _ *Payload) (any, []byte, func(), error) {
		if op == OpWrite {
			entered <- struct{}{}
			<-goOn
		}
		return nil, nil, nil, nil
	})
	client := dial(t, address, ClientOptions{})
	ended := make(chan error, 1)
	go func() {
		_, err := client.Call(context.Background(), OpWrite, WriteRequest{}, make([]byte, 90_000), nil)
		ended <- err
	}()
	<-entered
	ctx := within(t, 5*time.Second)
	if _, err := client.Call(ctx, OpWrite, WriteRequest{}, make([]byte, 90_000), nil); !errors.Is(err, ErrBusy) {
		t.Errorf("a second large request: %v, want ErrBusy", err)
	}
	if _, err := client.Call(ctx, OpDeliver, DeliverRequest{}, make([]byte, 90_000), nil); err != nil {
		t.Errorf("a message between agents, which has a budget of its own: %v", err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestReleaseIsCalledOnce(t *testing.T) {
	released := make(chan int, 10)
	data := []byte("content")
	address := serve(t, ServerOptions{}, func(context.Context, Op, []byte, *Payload) (any, []byte, func(), error) {
		return nil, data, func() { released <- 1 }, nil
	})
	got, err := dial(t, address, ClientOptions{}).Call(within(t, 5*time.Second), OpRead, ReadRequest{}, nil, nil)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%q, %v", got, err)
	}
	<-released
	if len(released) != 0 {
		t.Error("released twice")
	}
}

func TestAnswersOverTheLimitAreTooLarge(t *testing.T) {
	address := serve(t, ServerOptions{}, func(context.Context, Op, []byte, *Payload) (any, []byte, func(), error) {
		return HeaderReply{Header: block.Header{Manifest: make([]byte, MaxHeaderBytes)}}, nil, nil, nil
	})
	client := dial(t, address, ClientOptions{})
	if _, err := client.Call(within(t, 5*time.Second), OpHeader, HeaderRequest{}, nil, &HeaderReply{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an answer over the limit: %v, want ErrTooLarge", err)
	}
	if _, err := client.Call(within(t, 5*time.Second), OpWrite, WriteRequest{}, make([]byte, MaxPayloadBytes+1), nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a request over the limit: %v, want ErrTooLarge", err)
	}
}

func TestListenStaysLocal(t *testing.T) {
	if listener, err := Listen(context.Background(), "0.0.0.0:0", false); !errors.Is(err, ErrRemote) {
		t.Errorf("listening at every address: %v, %v; want ErrRemote", listener, err)
	}
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := NewServer(ServerOptions{}).Serve(context.Background(), listener, echo); !errors.Is(err, ErrRemote) {
		t.Errorf("serving at every address: %v, want ErrRemote", err)
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the refused listener is open: %v", err)
	}
}

func TestNonsenseEndsOnlyItsOwnConnection(t *testing.T) {
	address := serve(t, ServerOptions{}, echo)
	for _, nonsense := range []string{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n        ", string(make([]byte, 100))} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, nonsense); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(conn); len(rest) != 0 {
			t.Errorf("nonsense was answered with %q, %v", rest, err)
		}
		conn.Close()
	}
	if _, err := dial(t, address, ClientOptions{}).Call(within(t, 5*time.Second), OpRead, ReadRequest{}, nil, nil); err != nil {
		t.Fatal(err)
	}
}

// FuzzFrame reads arbitrary bytes as a frame: what is accepted is exactly what encode makes, and a frame that was
// changed anywhere is refused.
func FuzzFrame(f *testing.F) {
	for _, kind := range []frameKind{kindRequest, kindReply, kindCancel} {
		var header, payload []byte
		op := Op(0)
		if kind != kindCancel {
			header, payload = []byte{0xa0}, []byte("payload")
		}
		if kind == kindRequest {
			op = OpRead
		}
		head, err := newPrefix(kind, op, 7, header, payload)
		if err != nil {
			f.Fatal(err)
		}
		b := head.encode()
		f.Add(append(append(b[:], header...), payload...), uint16(40), byte(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint16, flip byte) {
		if len(data) < prefixBytes {
			return
		}
		head, err := decodePrefix((*[prefixBytes]byte)(data))
		if err != nil {
			return
		}
		if again := head.encode(); !bytes.Equal(again[:], data[:prefixBytes]) {
			t.Fatalf("%x was accepted, its canonical form is %x", data[:prefixBytes], again)
		}
		if int64(len(data)) < head.size() {
			return
		}
		header, payload := data[prefixBytes:prefixBytes+head.header], data[prefixBytes+head.header:head.size()]
		if head.checkBody(header, payload) != nil {
			return
		}
		for _, value := range []any{new(RunRequest), new(WriteRequest), new(ReadRequest), new(InspectReply), new(HelloReply), new(errorHeader)} {
			_ = Decode(header, value) // must not panic
		}
		frame := bytes.Clone(data[:head.size()])
		frame[int(at)%len(frame)] ^= flip | 1
		changed, err := decodePrefix((*[prefixBytes]byte)(frame))
		if err == nil && changed == head && changed.checkBody(frame[prefixBytes:prefixBytes+head.header], frame[prefixBytes+head.header:]) == nil {
			t.Fatalf("a changed frame passes: %x", frame)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := Listen(ctx, "127.0.0.1:0", false)
	if err != nil {
		b.Fatal(err)
	}
	var serving sync.WaitGroup
	data := make([]byte, 1<<20)
	serving.Go(func() {
		if err := NewServer(ServerOptions{}).Serve(ctx, listener, func(context.Context, Op, []byte, *Payload) (any, []byte, func(), error) {
			return nil, data, nil, nil
		}); err != nil {
			b.Error(err)
		}
	})
	client := NewClient(listener.Addr().String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		got, err := client.Call(ctx, OpRead, ReadRequest{}, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		Recycle(got)
	}
	if err := client.Close(); err != nil {
		b.Error(err)
	}
	cancel()
	serving.Wait()
}

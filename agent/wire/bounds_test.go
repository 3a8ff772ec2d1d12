package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/agent/block"
)

// raw connects to an address without a client.
func raw(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// announce sends the prefix of a request whose header and payload, of so many bytes, do not follow.
func announce(t *testing.T, conn io.Writer, op Op, header, payload uint32) {
	t.Helper()
	head := prefix{kind: kindRequest, op: op, stream: 1, header: header, payload: payload}.encode()
	if _, err := conn.Write(head[:]); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsAnnouncedAndDoesNotComeHoldsNothing(t *testing.T) {
	address := serve(t, ServerOptions{Wait: time.Millisecond}, echo)
	for range 200 {
		conn := raw(t, address)
		announce(t, conn, OpWrite, MaxHeaderBytes, MaxPayloadBytes)
		if _, err := conn.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	payload := make([]byte, 10<<20)
	got, err := dial(t, address, ClientOptions{}).Call(within(t, time.Minute), OpRead, ReadRequest{}, payload, nil)
	if err != nil || len(got) != len(payload) {
		t.Errorf("beside 200 peers that announced 80 MiB each: %d bytes, %v", len(got), err)
	}
}

func TestAPeerThatStallsWithinAFrameIsLeft(t *testing.T) {
	address := serve(t, ServerOptions{Stall: 10 * time.Millisecond}, echo)
	conn := raw(t, address)
	announce(t, conn, OpWrite, 10, 2<<20)
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); errors.Is(err, net.ErrClosed) || isTimeout(err) {
		t.Errorf("the connection of a stalled peer: %v, want its end", err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// blocking answers writes once it is released, and everything else at once.
func blocking(entered chan<- struct{}, release <-chan struct{}) Handler {
	return func(_ context.Context, op Op, _ []byte, _ *Payload) (any, []byte, func(), error) {
		if op == OpWrite {
			entered <- struct{}{}
			<-release
		}
		return nil, nil, nil, nil
	}
}

func TestControlWaitsForNothingElse(t *testing.T) {
	entered, release := make(chan struct{}, 1), make(chan struct{})
	address := serve(t, ServerOptions{RequestBytes: 100_000, Wait: time.Hour}, blocking(entered, release))
	var writing sync.WaitGroup
	data := dial(t, address, ClientOptions{})
	writing.Go(func() {
		if _, err := data.Call(context.Background(), OpWrite, WriteRequest{}, make([]byte, 90_000), nil); err != nil {
			t.Error(err)
		}
	})
	<-entered
	control := dial(t, address, ClientOptions{})
	for _, op := range []Op{OpHello, OpAttach, OpWitness} {
		if _, err := control.Call(within(t, time.Minute), op, HelloRequest{Cluster: "c"}, nil, nil); err != nil {
			t.Errorf("%s while requests hold all memory: %v", op, err)
		}
	}
	close(release)
	writing.Wait()
}

// A header may take far more room in memory than on the network.
func TestAHeaderCountsAsMuchAsItTakesInMemory(t *testing.T) {
	bomb, err := encode(map[int]any{7: make([]struct{}, 1<<20)})
	if err != nil {
		t.Fatal(err)
	}
	var request RunRequest
	if err := Decode(bomb, &request); err != nil || len(request.Stage) != 1<<20 {
		t.Fatalf("%d headers, %v", len(request.Stage), err)
	}
	if got, least := weigh(bomb), int64(len(request.Stage))*int64(reflect.TypeFor[block.Header]().Size()); got < least {
		t.Errorf("a header that takes %d bytes is said to take %d", least, got)
	}
	address := serve(t, ServerOptions{}, blocking(nil, nil))
	client := dial(t, address, ClientOptions{})
	_, err = client.Call(within(t, time.Minute), OpRun, map[int]any{7: make([]struct{}, 1<<20)}, make([]byte, 1<<20), nil)
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("a run of a million headers: %v, want ErrTooLarge", err)
	}
	addresses := make([]block.Address, MaxAddresses)
	if _, err := client.Call(within(t, time.Minute), OpInspect, InspectRequest{Addresses: addresses}, nil, nil); err != nil {
		t.Errorf("after that, as many addresses as may be asked for: %v", err)
	}
}

// TestNoElementIsLargerThanItCounts goes through all that requests are made of.
func TestNoElementIsLargerThanItCounts(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		if seen[of] {
			return
		}
		seen[of] = true
		if of.Size() > elementBytes {
			t.Errorf("%s takes %d bytes, and counts as %d", of, of.Size(), elementBytes)
		}
		switch of.Kind() {
		case reflect.Struct:
			for i := range of.NumField() {
				walk(of.Field(i).Type)
			}
		case reflect.Map:
			if pair := of.Key().Size() + of.Elem().Size(); 2*pair > elementBytes/3 {
				t.Errorf("a pair of %s takes %d bytes at least, and counts as %d", of, 2*pair, elementBytes/3)
			}
			walk(of.Key())
			walk(of.Elem())
		case reflect.Slice, reflect.Array, reflect.Pointer:
			walk(of.Elem())
		}
	}
	for _, request := range []any{
		HelloRequest{}, AttachRequest{}, WitnessRequest{}, WriteRequest{}, ReadRequest{}, InspectRequest{}, RunRequest{},
		DeliverRequest{}, DeleteRequest{}, ListRequest{}, HeaderRequest{},
	} {
		walk(reflect.TypeOf(request))
	}
}

func FuzzWeigh(f *testing.F) {
	f.Add([]byte{0xa1, 7, 0x82, 0xa0, 0xf6})
	f.Add([]byte{0xbb, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, header []byte) {
		var request RunRequest
		weight := weigh(header)
		if weight < 0 {
			t.Fatalf("%d bytes weigh %d", len(header), weight)
		}
		if Decode(header, &request) == nil {
			header, source := int64(reflect.TypeFor[block.Header]().Size()), int64(reflect.TypeFor[Source]().Size())
			least := int64(cap(request.Stage))*header + int64(cap(request.Blocks))*source
			if weight < least {
				t.Fatalf("%x takes %d bytes, and is said to take %d", header, least, weight)
			}
		}
	})
}

func TestAFullHouseHasRoomForNewcomers(t *testing.T) {
	entered, release := make(chan struct{}, 1), make(chan struct{})
	address := serve(t, ServerOptions{Connections: 3}, blocking(entered, release))
	var writing sync.WaitGroup
	busy := dial(t, address, ClientOptions{})
	writing.Go(func() {
		if _, err := busy.Call(context.Background(), OpWrite, WriteRequest{}, nil, nil); err != nil {
			t.Errorf("a connection with a request in flight was closed: %v", err)
		}
	})
	<-entered
	idle := []net.Conn{raw(t, address), raw(t, address), raw(t, address), raw(t, address)}
	if _, err := dial(t, address, ClientOptions{}).Call(within(t, time.Minute), OpHello, HelloRequest{}, nil, nil); err != nil {
		t.Errorf("a newcomer: %v", err)
	}
	if rest, err := io.ReadAll(idle[0]); len(rest) > 0 {
		t.Errorf("the connection that was idle for the longest: %q, %v", rest, err)
	}
	close(release)
	writing.Wait()
}

func TestTheSystemBreaksSilentConnections(t *testing.T) {
	conn := raw(t, serve(t, ServerOptions{}, echo))
	newLink(conn, nil, nil)
	socket, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := socket.Control(func(descriptor uintptr) {
		got, err := unix.GetsockoptInt(int(descriptor), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		if err != nil || time.Duration(got)*time.Millisecond != silenceTime {
			t.Errorf("what is unacknowledged breaks a connection after %d ms, %v", got, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

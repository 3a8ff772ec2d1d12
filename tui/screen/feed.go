package screen

import (
	"context"
	"time"

	"connectrpc.com/connect"

	tea "charm.land/bubbletea/v2"
)

const (
	// callPatience bounds a call.
	callPatience = 30 * time.Second
	// silence is how long a watch may be silent: the console says every 10 s that it is there.
	silence = 25 * time.Second
	// The first pause before a watch is begun anew, and the longest.
	retryFirst, retryLongest = 500 * time.Millisecond, 8 * time.Second
)

// feed is one watch: a stream of messages that is begun anew when it breaks. Its messages come through the program's
// loop; ask for the next with what Update returns.
type feed[M any] struct {
	session *session
	open    func(ctx context.Context) (*connect.ServerStreamForClient[M], error)

	begun   bool
	heard   time.Time // when something last came, or the watch was begun
	since   time.Time // since when nothing comes; zero while it lives
	failure error
	tries   int
	stop    context.CancelFunc
}

// received is a message of a watch.
type received[M any] struct {
	feed    *feed[M]
	stream  *connect.ServerStreamForClient[M]
	message *M
}

// broken is the end of a watch.
type broken[M any] struct {
	feed *feed[M]
	err  error
}

// again is the time to begin a watch anew.
type again[M any] struct{ feed *feed[M] }

// begin opens the watch, if it is not open.
func (f *feed[M]) begin() tea.Cmd {
	if f.begun {
		return nil
	}
	f.begun, f.heard = true, f.session.now()
	ctx, stop := context.WithCancel(f.session.ctx)
	f.stop = stop
	return func() tea.Msg {
		stream, err := f.open(ctx)
		if err != nil {
			stop()
			return broken[M]{f, err}
		}
		return f.receive(stream)
	}
}

// receive waits for the next message.
func (f *feed[M]) receive(stream *connect.ServerStreamForClient[M]) tea.Msg {
	if stream.Receive() {
		return received[M]{f, stream, stream.Msg()}
	}
	err := stream.Err()
	if ended := stream.Close(); err == nil {
		err = ended
	}
	if err == nil {
		err = errEnded
	}
	return broken[M]{f, err}
}

// Update returns the message that came, if one did.
func (f *feed[M]) Update(message tea.Msg) (came *M, next tea.Cmd) {
	switch message := message.(type) {
	case received[M]:
		if message.feed != f {
			return nil, nil
		}
		f.heard, f.since, f.failure, f.tries = f.session.now(), time.Time{}, nil, 0
		return message.message, func() tea.Msg { return f.receive(message.stream) }
	case broken[M]:
		if message.feed != f {
			return nil, nil
		}
		f.stop()
		if f.since.IsZero() {
			f.since = f.session.now()
		}
		f.failure, f.begun = message.err, false
		pause := min(retryLongest, retryFirst<<min(f.tries, 10))
		f.tries++
		return nil, tea.Tick(pause, func(time.Time) tea.Msg { return again[M]{f} })
	case again[M]:
		if message.feed == f {
			return nil, f.begin()
		}
	case tick:
		if f.begun && time.Time(message).Sub(f.heard) > silence {
			f.stop() // what waits for a message then hears of it
		}
	}
	return nil, nil
}

// stale says since when and why nothing comes; empty while something does.
func (f *feed[M]) stale() string {
	if f.since.IsZero() {
		return ""
	}
	return f.since.In(f.session.now().Location()).Format("15:04:05") + ": " + failureText(f.failure, f.session.options.Address)
}

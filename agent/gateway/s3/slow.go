package s3

import (
	"context"
	"encoding/xml"
	"net/http"
	"sync"
	"time"
)

// slowly answers what work returns. Where that takes long the answer begins before it, as one of success, and goes on with spaces, so
// that nobody on the way takes the connection for dead; clients of S3 read what came of it from the XML.
func (q *request) slowly(ctx context.Context, work func(ctx context.Context) (any, error)) error {
	type outcome struct {
		value any
		err   error
	}
	ended := make(chan outcome, 1)
	go func() {
		value, err := work(ctx)
		ended <- outcome{value, err}
	}()
	ticker := time.NewTicker(q.server.options.Patience)
	defer ticker.Stop()
	for {
		select {
		case came := <-ended:
			switch {
			case q.w.Sent:
				return q.finish(came.value, came.err)
			case came.err != nil:
				return came.err
			}
			return q.reply(came.value)
		case <-ticker.C:
			text := " "
			if !q.w.Sent {
				q.w.Header().Set("Content-Type", "application/xml")
				q.w.WriteHeader(http.StatusOK)
				text = xml.Header
			}
			_, err := q.w.Write([]byte(text))
			if err == nil {
				err = http.NewResponseController(q.w).Flush()
			}
			if err != nil {
				q.server.log.Debug("answering a request", "cause", err) // its context ends the work
			}
		}
	}
}

// finish ends an answer that has begun.
func (q *request) finish(value any, err error) error {
	if err != nil {
		as := codeOf(err)
		q.server.log.Warn("request failed", "method", q.Method, "path", q.URL.Path, "cause", err)
		value = bodyOfError(q, as, err)
	}
	text, err := xml.Marshal(value)
	if err == nil {
		_, err = q.w.Write(text)
	}
	return err
}

// turns has those of one name wait for each other.
type turns struct {
	mutex sync.Mutex
	taken map[string]chan struct{} // closed when it is free again
}

// enter waits until nobody else has the name.
func (t *turns) enter(ctx context.Context, name string) (leave func(), err error) {
	for {
		t.mutex.Lock()
		busy, is := t.taken[name]
		if !is {
			if t.taken == nil {
				t.taken = map[string]chan struct{}{}
			}
			own := make(chan struct{})
			t.taken[name] = own
			t.mutex.Unlock()
			return func() {
				t.mutex.Lock()
				delete(t.taken, name)
				t.mutex.Unlock()
				close(own)
			}, nil
		}
		t.mutex.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

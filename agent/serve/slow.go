package serve

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// clientPatience is how long a client may take for the next bytes of a transfer, which holds buffer memory meanwhile.
const clientPatience = time.Minute

// leastRate is how many bytes a second of a body have to come, over any clientPatience that is spent waiting for them.
const leastRate = 1 << 10

// patientBody is PatientBody's.
type patientBody struct {
	control *http.ResponseController
	body    io.Reader
	slow    error
	waited  time.Duration // for the bytes that
	came    int           // since the rate was looked at last
}

// PatientBody returns the body of a request, whose reads give up on a client that stalls, with an error that wraps slow.
func PatientBody(w http.ResponseWriter, r *http.Request, slow error) io.Reader {
	return &patientBody{control: http.NewResponseController(w), body: r.Body, slow: slow}
}

// Read waits for clientPatience at most, and for longer than that only for one that keeps bringing something.
func (p *patientBody) Read(into []byte) (int, error) {
	if p.waited > clientPatience {
		if least := int(leastRate * clientPatience.Seconds()); p.came < least {
			return 0, fmt.Errorf("%w: %d bytes of the body came within %s, %d have to", p.slow, p.came, clientPatience, least)
		}
		p.waited, p.came = 0, 0
	}
	began := time.Now()
	if err := p.control.SetReadDeadline(began.Add(clientPatience)); err != nil {
		return 0, fmt.Errorf("bounding the wait for a client: %w", err)
	}
	n, err := p.body.Read(into)
	p.waited, p.came = p.waited+time.Since(began), p.came+n
	if err != nil { // what follows may take its time
		if failed := p.control.SetReadDeadline(time.Time{}); failed != nil {
			return n, errors.Join(err, failed)
		}
	}
	return n, err
}

// PatientWriter gives up on a client that does not take what is written.
type PatientWriter struct{ http.ResponseWriter }

// Write waits for clientPatience at most.
func (w PatientWriter) Write(p []byte) (int, error) {
	if err := http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(clientPatience)); err != nil {
		return 0, fmt.Errorf("bounding the wait for a client: %w", err)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (w PatientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

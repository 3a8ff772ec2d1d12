package serve

import (
	"net/http"
	"time"
)

// Answer remembers what a request was answered, and whether anything was sent yet. Status is the one that net/http sends where
// nobody says one.
type Answer struct {
	http.ResponseWriter
	Status int
	Sent   bool
	Began  time.Time // of the answer
}

// NewAnswer returns the answer of a request.
func NewAnswer(w http.ResponseWriter) *Answer {
	return &Answer{ResponseWriter: w, Status: http.StatusOK}
}

func (a *Answer) begin() {
	if !a.Sent {
		a.Sent, a.Began = true, time.Now()
	}
}

// WriteHeader remembers the status.
func (a *Answer) WriteHeader(status int) {
	a.begin()
	a.Status = status
	a.ResponseWriter.WriteHeader(status)
}

// Write remembers that bytes were sent.
func (a *Answer) Write(p []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *Answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

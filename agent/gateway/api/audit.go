package api

import (
	"encoding/json"
	"time"
)

// AuditAction is a change of the cluster that somebody asked this gateway for.
type AuditAction struct {
	Sequence int64           `json:"sequence"` // of the record that began it
	Begun    time.Time       `json:"begun"`
	Ended    time.Time       `json:"ended,omitzero"`
	User     string          `json:"user"`
	Method   string          `json:"method"` // how the user is known
	From     string          `json:"from"`   // address
	Verb     string          `json:"verb"`   // that it takes
	Action   string          `json:"action"` // pattern of the request
	Object   string          `json:"object"` // what was to be changed
	Request  json.RawMessage `json:"request,omitempty"`
	After    json.RawMessage `json:"after,omitempty"` // the answer
	Result   string          `json:"result"`          // done; refused: nothing was changed; failed: it cannot be told; unknown: there is no end
	Error    string          `json:"error,omitempty"`
}

// AuditFilter says which actions; empty fields say nothing.
type AuditFilter struct {
	User         string
	Object       string // or a part of its name
	Verb         string
	Since, Until time.Time // of the begin; Until is exclusive
}

// AuditPage is a part of the audit log, newest first.
type AuditPage struct {
	Actions []AuditAction `json:"actions"`
	Next    int64         `json:"next,omitempty"` // what to give as before for those that follow; 0: there are none
}

// AuditHead names the newest record of an audit log. Kept elsewhere, it shows later whether the log goes on from it.
type AuditHead struct {
	Sequence int64  `json:"sequence"` // 0: there are none
	Hash     string `json:"hash,omitempty"`
}

// AuditReport is what became of a look at the whole audit log.
type AuditReport struct {
	Intact  bool      `json:"intact"`
	Problem string    `json:"problem,omitempty"` // what is wrong, and where
	First   int64     `json:"first"`             // the oldest record
	Records int64     `json:"records"`
	Head    AuditHead `json:"head"`
}

// Package client speaks the gateway's HTTP API. A Client is safe for concurrent use and holds connections open between
// calls. No call is ever repeated behind the caller's back: whoever gets ErrUnknownOutcome or ErrUnreachable for a write
// decides with the object's revision in hand.
package client

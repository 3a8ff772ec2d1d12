// Package wire is the agents' protocol: frames over TCP, a client that multiplexes calls over one connection, and the
// server side. The header of a frame is the CBOR (RFC 8949) of one of the structs in messages.go; the payload is raw
// bytes that never pass through an encoder.
//
// A call either gets the peer's answer, or the peer's error as one of the sentinels of errors.go, or ErrUnreachable,
// which says nothing about the outcome. Every operation may be repeated, except that a repeated Run is answered from
// memory only for as long as the agent remembers it.
package wire

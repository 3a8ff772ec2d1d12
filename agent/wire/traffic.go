package wire

import "sync/atomic"

// Traffic counts the bytes of requests and answers by their operation: whole frames, also of calls whose callers gave up, without
// what TLS adds. Several clients may share one. Safe for concurrent use.
type Traffic struct {
	operations [len(opNames)]struct{ sent, received atomic.Int64 }
}

// Each calls do for every operation with the bytes of its requests that were sent, and of its answers that were received.
func (t *Traffic) Each(do func(op Op, sent, received int64)) {
	for op := OpHello; int(op) < len(t.operations); op++ {
		do(op, t.operations[op].sent.Load(), t.operations[op].received.Load())
	}
}

// asked counts a request that was sent.
func (t *Traffic) asked(head prefix) { t.operations[head.op].sent.Add(head.size()) }

// answered counts an answer that was received.
func (t *Traffic) answered(head prefix) {
	if op := int(uint8(head.stream)); op < len(t.operations) { // else it answers what was never asked
		t.operations[op].received.Add(head.size())
	}
}

// streamOf is the stream of a call. It ends with the operation, so that answers count for it also when nobody waits for them any more.
func streamOf(call uint64, op Op) uint64 { return call<<8 | uint64(op) }

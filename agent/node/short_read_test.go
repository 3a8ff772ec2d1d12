package node_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/wire"
)

// A short answer ends with the last byte that is stored of what was asked for, whatever that is, and is else the same.
func TestShortAnswers(t *testing.T) {
	a, _ := attached(t, node.Options{})
	sequence := uint64(10)
	rapid.Check(t, func(rt *rapid.T) {
		sequence++
		units, unitBytes := rapid.IntRange(1, 4).Draw(rt, "units"), rapid.IntRange(1, 100).Draw(rt, "bytes")
		h := header("n1", 0, stamp(sequence), rapid.IntRange(0, 3).Draw(rt, "first"), units, unitBytes)
		var full []byte
		for i := range units {
			full = append(full, filled(sequence<<8+uint64(i), rapid.IntRange(0, unitBytes).Draw(rt, "length"), unitBytes)...)
		}
		if _, err := a.write(h, bytes.Clone(full)); err != nil {
			rt.Fatal(err)
		}
		request := wire.ReadRequest{Address: h.Address(), Short: true}
		var want []byte
		for range rapid.IntRange(0, 5).Draw(rt, "ranges") {
			unit := rapid.IntRange(0, units-1).Draw(rt, "unit")
			r := wire.Range{Unit: h.FirstUnit + unit, Offset: rapid.IntRange(0, unitBytes).Draw(rt, "offset")}
			r.Length = rapid.IntRange(0, unitBytes-r.Offset).Draw(rt, "length of it")
			if rapid.Bool().Draw(rt, "whole") {
				r.Offset, r.Length = 0, unitBytes
			}
			request.Ranges = append(request.Ranges, r)
			want = append(want, full[unit*unitBytes+r.Offset:][:r.Length]...)
		}
		got, err := a.client.Call(t.Context(), wire.OpRead, request, nil, nil)
		if err != nil || !bytes.Equal(got, bytes.TrimRight(want, "\x00")) {
			rt.Fatalf("ranges %+v are answered by %x, %v; want %x without the zeros at its end", request.Ranges, got, err, want)
		}
	})
}

package e2e

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// The checker itself must be able to fail: a stale read and a lost update are refused, the same histories put right are
// accepted.
func TestRegisterModelTellsRightFromWrong(t *testing.T) {
	operation := func(call, back int64, in input, out output) porcupine.Operation {
		in.key = "k"
		return porcupine.Operation{Input: in, Output: out, Call: call, Return: back}
	}
	first, second := registerOf([]uint32{1, 1, 1, 1, 1, 1}), registerOf([]uint32{2, 2, 2, 2, 2, 2})
	for _, c := range []struct {
		intent  string
		history []porcupine.Operation
		legal   bool
	}{
		{"a read after two writes sees the second", []porcupine.Operation{
			operation(0, 1, input{action: actionPut, value: first}, output{}),
			operation(2, 3, input{action: actionPut, value: second}, output{}),
			operation(4, 5, input{action: actionGet}, output{value: second}),
		}, true},
		{"a stale read", []porcupine.Operation{
			operation(0, 1, input{action: actionPut, value: first}, output{}),
			operation(2, 3, input{action: actionPut, value: second}, output{}),
			operation(4, 5, input{action: actionGet}, output{value: first}),
		}, false},
		{"an update that was acknowledged and lost", []porcupine.Operation{
			operation(0, 1, input{action: actionPut, value: first}, output{}),
			operation(2, 3, input{action: actionUpdate, segment: 2, number: 9}, output{}),
			operation(4, 5, input{action: actionGet}, output{value: first}),
		}, false},
		{"a put of unknown outcome may show late or never, but not come and go", []porcupine.Operation{
			operation(0, 1, input{action: actionPut, value: first}, output{}),
			operation(2, 100, input{action: actionPut, value: second}, output{unknown: true}),
			operation(4, 5, input{action: actionGet}, output{value: first}),
			operation(6, 7, input{action: actionGet}, output{value: second}),
			operation(8, 9, input{action: actionGet}, output{value: first}),
		}, false},
		{"a delete that found nothing where there was something", []porcupine.Operation{
			operation(0, 1, input{action: actionPut, value: first}, output{}),
			operation(2, 3, input{action: actionDelete}, output{missing: true}),
		}, false},
	} {
		t.Run(c.intent, func(t *testing.T) {
			if got := porcupine.CheckOperations(registerModel.ToModel(), c.history); got != c.legal {
				t.Fatalf("accepted: %v, want %v", got, c.legal)
			}
		})
	}
}

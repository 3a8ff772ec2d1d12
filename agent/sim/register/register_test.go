package register_test

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/restripe/restripe/agent/sim/register"
)

// The checker itself must be able to fail: a stale read and a lost update are refused, the same histories put right are
// accepted.
func TestRegisterModelTellsRightFromWrong(t *testing.T) {
	operation := func(call, back int64, in register.Call, out register.Answer) porcupine.Operation {
		in.Key = "k"
		return porcupine.Operation{Input: in, Output: out, Call: call, Return: back}
	}
	first, second := register.Of([]uint32{1, 1, 1, 1, 1, 1}), register.Of([]uint32{2, 2, 2, 2, 2, 2})
	for _, c := range []struct {
		intent  string
		history []porcupine.Operation
		legal   bool
	}{
		{"a read after two writes sees the second", []porcupine.Operation{
			operation(0, 1, register.Call{Action: register.Put, Value: first}, register.Answer{}),
			operation(2, 3, register.Call{Action: register.Put, Value: second}, register.Answer{}),
			operation(4, 5, register.Call{Action: register.Get}, register.Answer{Value: second}),
		}, true},
		{"a stale read", []porcupine.Operation{
			operation(0, 1, register.Call{Action: register.Put, Value: first}, register.Answer{}),
			operation(2, 3, register.Call{Action: register.Put, Value: second}, register.Answer{}),
			operation(4, 5, register.Call{Action: register.Get}, register.Answer{Value: first}),
		}, false},
		{"an update that was acknowledged and lost", []porcupine.Operation{
			operation(0, 1, register.Call{Action: register.Put, Value: first}, register.Answer{}),
			operation(2, 3, register.Call{Action: register.Update, First: 2, End: 2 + 1, Number: 9}, register.Answer{}),
			operation(4, 5, register.Call{Action: register.Get}, register.Answer{Value: first}),
		}, false},
		{"a put of unknown outcome may show late or never, but not come and go", []porcupine.Operation{
			operation(0, 1, register.Call{Action: register.Put, Value: first}, register.Answer{}),
			operation(2, 100, register.Call{Action: register.Put, Value: second}, register.Answer{Unknown: true}),
			operation(4, 5, register.Call{Action: register.Get}, register.Answer{Value: first}),
			operation(6, 7, register.Call{Action: register.Get}, register.Answer{Value: second}),
			operation(8, 9, register.Call{Action: register.Get}, register.Answer{Value: first}),
		}, false},
		{"what was lent is there for some and not for others", []porcupine.Operation{
			operation(0, 1, register.Call{Action: register.Lend, Value: first}, register.Answer{}),
			operation(2, 3, register.Call{Action: register.Get}, register.Answer{}),
			operation(4, 5, register.Call{Action: register.Get}, register.Answer{Value: first}),
			operation(6, 7, register.Call{Action: register.Create, Value: second}, register.Answer{}),
			operation(8, 9, register.Call{Action: register.Expire, Value: first}, register.Answer{}),
			operation(10, 11, register.Call{Action: register.Get}, register.Answer{Value: second}),
		}, true},
		{"what was lent is another value", []porcupine.Operation{
			operation(0, 1, register.Call{Action: register.Lend, Value: first}, register.Answer{}),
			operation(2, 3, register.Call{Action: register.Get}, register.Answer{Value: second}),
		}, false},
		{"what was lent is there after it has expired, though it was changed meanwhile", []porcupine.Operation{
			operation(0, 1, register.Call{Action: register.Lend, Value: first}, register.Answer{}),
			operation(2, 3, register.Call{Action: register.Update, First: 0, End: 1, Number: 9}, register.Answer{}),
			operation(4, 5, register.Call{Action: register.Expire, Value: first}, register.Answer{}),
			operation(6, 7, register.Call{Action: register.Get}, register.Answer{Value: first.With(0, 1, 9)}),
		}, false},
		{"what was lent comes back after it was removed", []porcupine.Operation{
			operation(0, 1, register.Call{Action: register.Lend, Value: first}, register.Answer{}),
			operation(2, 3, register.Call{Action: register.Remove}, register.Answer{}),
			operation(4, 5, register.Call{Action: register.Get}, register.Answer{Value: first}),
		}, false},
		{"a delete that found nothing where there was something", []porcupine.Operation{
			operation(0, 1, register.Call{Action: register.Put, Value: first}, register.Answer{}),
			operation(2, 3, register.Call{Action: register.Delete}, register.Answer{Missing: true}),
		}, false},
	} {
		t.Run(c.intent, func(t *testing.T) {
			if got := porcupine.CheckOperations(register.Model.ToModel(), c.history); got != c.legal {
				t.Fatalf("accepted: %v, want %v", got, c.legal)
			}
		})
	}
}

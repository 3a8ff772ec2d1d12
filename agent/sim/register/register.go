// Package register is the workload of simulation and chaos tests as a model that histories of clients are checked against.
//
// An object is a register of a few segments. Every write gives segments a number that is used once, and the bytes of a
// segment follow from key, segment and number: what a read returns says which writes it saw, and a mixture is recognised.
package register

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/restripe/restripe/agent/block"
)

// Value is the value of one object: a number per segment; Absent is no object.
type Value string

// Absent is the value where there is no object.
const Absent Value = ""

// Of is the value of an object whose segments have these numbers.
func Of(numbers []uint32) Value {
	parts := make([]string, len(numbers))
	for i, number := range numbers {
		parts[i] = strconv.FormatUint(uint64(number), 10)
	}
	return Value(strings.Join(parts, ","))
}

// With returns the value with segments [first, end) changed.
func (r Value) With(first, end int, number uint32) Value {
	parts := strings.Split(string(r), ",")
	for i := first; i < end && i < len(parts); i++ {
		parts[i] = strconv.FormatUint(uint64(number), 10)
	}
	return Value(strings.Join(parts, ","))
}

// Fill writes the bytes of a segment that has the given number.
func Fill(key string, segment int, number uint32, into []byte) {
	binary.LittleEndian.PutUint32(into, number)
	state := uint64(number)<<8 | uint64(segment)
	for _, letter := range []byte(key) {
		state = state*0x100000001b3 ^ uint64(letter)
	}
	for at := 4; at < len(into); at += 8 {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], state)
		copy(into[at:], word[:])
	}
}

// Content is the bytes of a whole object of segments of the same size each; what size leaves over is zero.
func Content(key string, size int, numbers []uint32) []byte {
	data := make([]byte, size)
	each := size / len(numbers)
	for i, number := range numbers {
		Fill(key, i, number, data[i*each:(i+1)*each])
	}
	return data
}

// Parse reads the value from an object's bytes and checks every one of them.
func Parse(key string, segments int, data []byte) (Value, error) {
	each := len(data) / segments
	if each < 4 {
		return Absent, fmt.Errorf("%q has %d bytes, too few for %d segments", key, len(data), segments)
	}
	numbers := make([]uint32, segments)
	want := make([]byte, each)
	for i := range numbers {
		segment := data[i*each : (i+1)*each]
		numbers[i] = binary.LittleEndian.Uint32(segment)
		Fill(key, i, numbers[i], want)
		if !slices.Equal(segment, want) {
			return Absent, fmt.Errorf("segment %d of %q holds bytes of no single write (number %d)", i, key, numbers[i])
		}
	}
	if rest := data[segments*each:]; slices.ContainsFunc(rest, func(b byte) bool { return b != 0 }) {
		return Absent, fmt.Errorf("%q ends in bytes that nobody wrote: %x", key, rest)
	}
	return Of(numbers), nil
}

// Action is what an operation does.
type Action int

// The actions.
const (
	Put    Action = iota
	Create        // put, if there is no object
	Get
	Update
	Delete
	Swap   // put, over the revision that was read
	Remove // delete, which does not say whether there was an object
	Lend   // put of an object that expires; some gateways may find it expired before others do
	Expire // of what was lent, when it has expired for all
)

var names = [...]string{"put", "create", "get", "update", "delete", "swap", "remove", "lend", "expire"}

func (a Action) String() string { return names[a] }

// Call is one operation on one key. An unknown answer to it may or may not stand for an effect, at any time after the call.
type Call struct {
	Key        string
	Action     Action
	Value      Value // put, create, swap, lend; expire: what was lent
	Over       Value // swap: what was read
	First, End int   // update: segments
	Number     uint32
}

// Answer is what came back.
type Answer struct {
	Unknown bool
	Value   Value // get
	Missing bool  // update, delete: there was no object

	Revision block.Stamp // that a put or an update gave the object, where its answer says so
}

func (c Call) String() string {
	switch c.Action {
	case Put, Create, Lend, Expire:
		return fmt.Sprintf("%s %s %s", c.Action, c.Key, c.Value)
	case Swap:
		return fmt.Sprintf("swap %s from %s to %s", c.Key, c.Over, c.Value)
	case Update:
		return fmt.Sprintf("update %s [%d,%d) to %d", c.Key, c.First, c.End, c.Number)
	}
	return fmt.Sprintf("%s %s", c.Action, c.Key)
}

func (a Answer) String() string {
	switch {
	case a.Unknown:
		return "unknown"
	case a.Missing:
		return "no object"
	case a.Value != Absent:
		return string(a.Value)
	}
	return "ok"
}

// lent is what a register has that was lent: what it is now, and as what it was lent.
func lent(now, as Value) Value { return now + "?" + as }

// step is what a linearizable register may do: the values it may have after the call, none where the answer is wrong. One that was lent
// may be there or not for each who asks, until it has expired for all.
func step(value Value, in Call, out Answer) []Value {
	now, as, isLent := strings.Cut(string(value), "?")
	if !isLent {
		return held(value, in, out)
	}
	var after []Value
	switch in.Action {
	case Expire:
		if as == string(in.Value) {
			return []Value{Absent}
		}
		return []Value{value}
	case Get:
		if out.Value == Absent || out.Value == Value(now) {
			return []Value{value}
		}
		return nil
	case Update:
		if out.Missing || out.Unknown {
			after = append(after, value)
		}
		if !out.Missing {
			after = append(after, lent(Value(now).With(in.First, in.End, in.Number), Value(as)))
		}
		return after
	case Delete:
		if out.Missing {
			return []Value{value, Absent} // whoever removed it
		}
	}
	for _, was := range []Value{Value(now), Absent} {
		for _, is := range held(was, in, out) {
			if is == Value(now) {
				is = value
			}
			after = append(after, is)
		}
	}
	return after
}

// held is step of a register that was not lent.
func held(value Value, in Call, out Answer) []Value {
	after := value
	switch in.Action {
	case Get:
		if out.Value != value {
			return nil
		}
		return []Value{value}
	case Put:
		after = in.Value
	case Create:
		if value == Absent {
			after = in.Value
		} else if !out.Unknown {
			return nil
		}
	case Swap:
		if value == in.Over {
			after = in.Value
		} else if !out.Unknown {
			return nil
		}
	case Update:
		if value != Absent {
			after = value.With(in.First, in.End, in.Number)
		}
	case Delete, Remove:
		after = Absent
	case Lend:
		after = lent(in.Value, in.Value)
	}
	if out.Unknown {
		return []Value{value, after}
	}
	if (in.Action == Update || in.Action == Delete) && out.Missing != (value == Absent) {
		return nil
	}
	return []Value{after}
}

// Model is a linearizable store of registers: of inputs Call and outputs Answer.
var Model = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, operation := range history {
			key := operation.Input.(Call).Key
			byKey[key] = append(byKey[key], operation)
		}
		return slices.Collect(maps.Values(byKey))
	},
	Init: func() []any { return []any{Absent} },
	Step: func(state, in, out any) (states []any) {
		for _, value := range step(state.(Value), in.(Call), out.(Answer)) {
			states = append(states, value)
		}
		return states
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%s: %s", in, out) },
}

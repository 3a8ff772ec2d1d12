package sim

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// An object is a register of a few segments. Every write gives segments a number that is used once, and the bytes of a
// segment follow from key, segment and number: what a read returns says which writes it saw, and a mixture is recognised.

const segments = 4

// register is the value of one object: a number per segment; absent is no object.
type register string

const absent register = ""

func registerOf(numbers []uint32) register {
	parts := make([]string, len(numbers))
	for i, number := range numbers {
		parts[i] = strconv.FormatUint(uint64(number), 10)
	}
	return register(strings.Join(parts, ","))
}

// with returns the register with segments [first, end) changed.
func (r register) with(first, end int, number uint32) register {
	parts := strings.Split(string(r), ",")
	for i := first; i < end && i < len(parts); i++ {
		parts[i] = strconv.FormatUint(uint64(number), 10)
	}
	return register(strings.Join(parts, ","))
}

// fill writes the bytes of a segment that has the given number.
func fill(key string, segment int, number uint32, into []byte) {
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

// content is the bytes of a whole object of segments of each bytes.
func content(key string, each int, numbers []uint32) []byte {
	data := make([]byte, each*len(numbers))
	for i, number := range numbers {
		fill(key, i, number, data[i*each:(i+1)*each])
	}
	return data
}

// parse reads the register from an object's bytes and checks every one of them.
func parse(key string, each int, data []byte) (register, error) {
	if len(data) != each*segments {
		return absent, fmt.Errorf("%q has %d bytes, not %d", key, len(data), each*segments)
	}
	numbers := make([]uint32, segments)
	want := make([]byte, each)
	for i := range numbers {
		segment := data[i*each : (i+1)*each]
		numbers[i] = binary.LittleEndian.Uint32(segment)
		fill(key, i, numbers[i], want)
		if !slices.Equal(segment, want) {
			return absent, fmt.Errorf("segment %d of %q holds bytes of no single write (number %d)", i, key, numbers[i])
		}
	}
	return registerOf(numbers), nil
}

type action int

const (
	actionPut    action = iota
	actionCreate        // put, if there is no object
	actionGet
	actionUpdate
	actionDelete
	actionSwap // put, over the revision that was read
)

var actionNames = [...]string{"put", "create", "get", "update", "delete", "swap"}

func (a action) String() string { return actionNames[a] }

// call and answer are one operation on one key. An unknown answer may or may not stand for an effect, at any time after
// the call.
type call struct {
	key        string
	action     action
	value      register // put, create, swap
	over       register // swap: what was read
	first, end int      // update: segments
	number     uint32
}

type answer struct {
	unknown bool
	value   register // get
	missing bool     // update, delete: there was no object
}

func (c call) String() string {
	switch c.action {
	case actionPut, actionCreate:
		return fmt.Sprintf("%s %s %s", c.action, c.key, c.value)
	case actionSwap:
		return fmt.Sprintf("swap %s from %s to %s", c.key, c.over, c.value)
	case actionUpdate:
		return fmt.Sprintf("update %s [%d,%d) to %d", c.key, c.first, c.end, c.number)
	}
	return fmt.Sprintf("%s %s", c.action, c.key)
}

func (a answer) String() string {
	switch {
	case a.unknown:
		return "unknown"
	case a.missing:
		return "no object"
	case a.value != absent:
		return string(a.value)
	}
	return "ok"
}

// step is what a linearizable register may do: the values it may have after the call, none where the answer is wrong.
func step(value register, in call, out answer) []register {
	after := value
	switch in.action {
	case actionGet:
		if out.value != value {
			return nil
		}
		return []register{value}
	case actionPut:
		after = in.value
	case actionCreate:
		if value == absent {
			after = in.value
		} else if !out.unknown {
			return nil
		}
	case actionSwap:
		if value == in.over {
			after = in.value
		} else if !out.unknown {
			return nil
		}
	case actionUpdate:
		if value != absent {
			after = value.with(in.first, in.end, in.number)
		}
	case actionDelete:
		after = absent
	}
	if out.unknown {
		return []register{value, after}
	}
	if (in.action == actionUpdate || in.action == actionDelete) && out.missing != (value == absent) {
		return nil
	}
	return []register{after}
}

// linearizable reports whether the history of one key fits one order of its operations.
func linearizable(history []porcupine.Operation) bool {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{absent} },
		Step: func(state, in, out any) (states []any) {
			for _, value := range step(state.(register), in.(call), out.(answer)) {
				states = append(states, value)
			}
			return states
		},
		Equal: func(a, b any) bool { return a == b },
	}
	return porcupine.CheckOperations(model.ToModel(), history)
}

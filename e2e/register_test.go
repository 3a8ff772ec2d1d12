package e2e

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Objects in these tests are registers of a few segments. Every write gives a segment a fresh number, and a segment's
// bytes are a function of key, segment and number, so that what a read returns says which writes it saw, and a mixture of
// two versions is recognised.

const segments = 6

// register is the value of one object: a number per segment; absent is the register of no object.
type register string

const absent register = ""

func registerOf(numbers []uint32) register {
	parts := make([]string, len(numbers))
	for i, number := range numbers {
		parts[i] = fmt.Sprint(number)
	}
	return register(strings.Join(parts, ","))
}

// with returns the register with one segment's number changed.
func (r register) with(segment int, number uint32) register {
	parts := strings.Split(string(r), ",")
	parts[segment] = fmt.Sprint(number)
	return register(strings.Join(parts, ","))
}

// fill writes the bytes of a segment that has the given number.
func fill(key string, segment int, number uint32, into []byte) {
	binary.LittleEndian.PutUint32(into, number)
	var seed uint64
	for _, letter := range []byte(key) {
		seed = seed*131 + uint64(letter)
	}
	source := rand.New(rand.NewPCG(seed, uint64(segment)<<32|uint64(number)))
	for at := 4; at < len(into); at += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], source.Uint64())
		copy(into[at:], word[:])
	}
}

// content is the bytes of a whole object.
func content(key string, size int, numbers []uint32) []byte {
	data := make([]byte, size)
	each := size / segments
	for i, number := range numbers {
		fill(key, i, number, data[i*each:(i+1)*each])
	}
	return data
}

// parse reads the register from an object's bytes and checks every one of them.
func parse(key string, data []byte) (register, error) {
	each := len(data) / segments
	if each < 4 {
		return absent, fmt.Errorf("%q has %d bytes", key, len(data))
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
	actionPut action = iota
	actionGet
	actionUpdate
	actionDelete
)

// input and output are one operation on one key. An unknown output may or may not have taken effect, at any time after
// its call.
type input struct {
	key     string
	action  action
	value   register // put
	segment int      // update
	number  uint32
}

type output struct {
	unknown bool
	value   register // get: absent where there is no object
	missing bool     // update, delete: there was no object
}

// registerModel is what a linearizable store of registers may do.
var registerModel = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, operation := range history {
			key := operation.Input.(input).key
			byKey[key] = append(byKey[key], operation)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() []any { return []any{absent} },
	Step: func(state, in, out any) []any {
		value, call, result := state.(register), in.(input), out.(output)
		after := value
		switch call.action {
		case actionGet:
			if result.value != value {
				return nil
			}
			return []any{value}
		case actionPut:
			after = call.value
		case actionUpdate:
			if value != absent {
				after = value.with(call.segment, call.number)
			}
		case actionDelete:
			after = absent
		}
		if result.unknown {
			return []any{value, after}
		}
		if (call.action == actionUpdate || call.action == actionDelete) && result.missing != (value == absent) {
			return nil
		}
		return []any{after}
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%+v -> %+v", in, out)
	},
}

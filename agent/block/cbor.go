package block

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// encoding is deterministic; decoding bounds everything that a length in the input could make large.
var (
	encoding = must(cbor.CoreDetEncOptions().EncMode())
	decoding = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		MaxArrayElements:  MaxUnits,
		MaxMapPairs:       64,
		MaxNestedLevels:   8,
		UTF8:              cbor.UTF8RejectInvalid,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	}.DecMode())
)

// must is for modes made of constants: an error is a mistake of the program.
func must[Mode any](mode Mode, err error) Mode {
	if err != nil {
		panic(fmt.Sprintf("block: %v", err))
	}
	return mode
}

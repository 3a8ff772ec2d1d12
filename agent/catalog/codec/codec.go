// Package codec encodes the records of a catalog: canonical CBOR, and decimals for what the engines or people compare. Of a record
// that a later release has written it says so, where writing it again would drop what it does not know.
package codec

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/fxamacker/cbor/v2"

	"github.com/restripe/restripe/agent/catalog/kv"
)

var encoding, decoding, strictly = modes()

func modes() (encode cbor.EncMode, decode, strict cbor.DecMode) {
	encodeOptions := cbor.CoreDetEncOptions()
	encodeOptions.String = cbor.StringToByteString
	encode, err := encodeOptions.EncMode()
	if err != nil {
		panic(err) // constant options
	}
	options := cbor.DecOptions{
		ByteStringToString: cbor.ByteStringToStringAllowed,
		DupMapKey:          cbor.DupMapKeyEnforcedAPF,
		MaxArrayElements:   1 << 24, // a large object has one extent for each of its groups
	}
	decode, err = options.DecMode()
	if err != nil {
		panic(err) // constant options
	}
	options.ExtraReturnErrors = cbor.ExtraDecErrorUnknownField
	if strict, err = options.DecMode(); err != nil {
		panic(err) // constant options
	}
	return encode, decode, strict
}

// Encode returns the canonical encoding of a record.
func Encode(record any) []byte {
	raw, err := encoding.Marshal(record)
	if err != nil {
		panic(fmt.Sprintf("encoding %T: %v", record, err)) // records are plain structs
	}
	return raw
}

// Decode reads the record stored under key.
func Decode[T any](key string, raw []byte) (T, error) {
	var record T
	if err := decoding.Unmarshal(raw, &record); err != nil {
		return record, fmt.Errorf("decoding record %q: %w: %w", key, kv.ErrCorrupt, err)
	}
	return record, nil
}

// DecodeToChange is Decode of a record that is to be written again, or removed: what a later release has added to it would be
// lost. It fails with kv.ErrNewer then.
func DecodeToChange[T any](key string, raw []byte) (T, error) {
	var record T
	err := strictly.Unmarshal(raw, &record)
	var unknown *cbor.UnknownFieldError
	switch {
	case errors.As(err, &unknown):
		return record, fmt.Errorf("record %q has fields of a later release, which this one would drop; "+
			"upgrade all gateways before that release is used to the full: %w", key, kv.ErrNewer)
	case err != nil:
		return record, fmt.Errorf("decoding record %q: %w: %w", key, kv.ErrCorrupt, err)
	}
	return record, nil
}

// DecodeCount reads a decimal record; an absent one counts 0.
func DecodeCount(key string, raw []byte) (int64, error) {
	if raw == nil {
		return 0, nil
	}
	count, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("decoding record %q: %w: %w", key, kv.ErrCorrupt, err)
	}
	return count, nil
}

// EncodeCount writes a decimal record.
func EncodeCount[T int64 | uint64](count T) []byte { return fmt.Appendf(nil, "%d", count) }

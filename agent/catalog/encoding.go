package catalog

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/fxamacker/cbor/v2"
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

// encode returns the canonical encoding of a record.
func encode(record any) []byte {
	raw, err := encoding.Marshal(record)
	if err != nil {
		panic(fmt.Sprintf("encoding %T: %v", record, err)) // records are plain structs
	}
	return raw
}

// decode reads the record stored under key.
func decode[T any](key string, raw []byte) (T, error) {
	var record T
	if err := decoding.Unmarshal(raw, &record); err != nil {
		return record, fmt.Errorf("decoding record %q: %w: %w", key, ErrCorrupt, err)
	}
	return record, nil
}

// decodeToChange is decode of a record that is to be written again, or removed: what a later release has added to it would be
// lost. It fails with ErrNewer then.
func decodeToChange[T any](key string, raw []byte) (T, error) {
	var record T
	err := strictly.Unmarshal(raw, &record)
	var unknown *cbor.UnknownFieldError
	switch {
	case errors.As(err, &unknown):
		return record, fmt.Errorf("record %q has fields of a later release, which this one would drop; "+
			"upgrade all gateways before that release is used to the full: %w", key, ErrNewer)
	case err != nil:
		return record, fmt.Errorf("decoding record %q: %w: %w", key, ErrCorrupt, err)
	}
	return record, nil
}

// decodeCount reads a decimal record; an absent one counts 0.
func decodeCount(key string, raw []byte) (int64, error) {
	if raw == nil {
		return 0, nil
	}
	count, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("decoding record %q: %w: %w", key, ErrCorrupt, err)
	}
	return count, nil
}

func encodeCount(count int64) []byte { return strconv.AppendInt(nil, count, 10) }

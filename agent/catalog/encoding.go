package catalog

import (
	"fmt"
	"strconv"

	"github.com/fxamacker/cbor/v2"
)

var encoding, decoding = modes()

func modes() (cbor.EncMode, cbor.DecMode) {
	encodeOptions := cbor.CoreDetEncOptions()
	encodeOptions.String = cbor.StringToByteString
	encode, err := encodeOptions.EncMode()
	if err != nil {
		panic(err) // constant options
	}
	decode, err := cbor.DecOptions{
		ByteStringToString: cbor.ByteStringToStringAllowed,
		DupMapKey:          cbor.DupMapKeyEnforcedAPF,
		MaxArrayElements:   1 << 24, // a large object has one extent for each of its groups
	}.DecMode()
	if err != nil {
		panic(err) // constant options
	}
	return encode, decode
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

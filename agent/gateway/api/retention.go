package api

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/restripe/restripe/agent/block"
)

// KeepVersions says how many versions of an object are kept that were put over: so many, or KeepDurable.
type KeepVersions int

// KeepDurable keeps the last version under a scheme with parities, while those put over it have none.
const KeepDurable KeepVersions = block.KeepDurable

const (
	// MaxKeepVersions is how many may be kept: all are named in the object's record.
	MaxKeepVersions = 64

	durable = "durable"
)

// Limits of how long objects of a class are there.
const (
	MinExpireAfter = time.Second
	MaxExpireAfter = 100 * 365 * 24 * time.Hour
)

// ParseKeepVersions reads a number or "durable"; nothing said is none.
func ParseKeepVersions(text string) (KeepVersions, error) {
	switch text {
	case "":
		return 0, nil
	case durable:
		return KeepDurable, nil
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 0 || count > MaxKeepVersions {
		return 0, fmt.Errorf("%q is neither %s nor a number from 0 to %d", text, durable, MaxKeepVersions)
	}
	return KeepVersions(count), nil
}

// String is what ParseKeepVersions reads.
func (k KeepVersions) String() string {
	if k == KeepDurable {
		return durable
	}
	return strconv.Itoa(int(k))
}

// MarshalJSON writes a number, or "durable".
func (k KeepVersions) MarshalJSON() ([]byte, error) {
	if k == KeepDurable {
		return json.Marshal(durable)
	}
	return json.Marshal(int(k))
}

// UnmarshalJSON reads a number, or text.
func (k *KeepVersions) UnmarshalJSON(data []byte) (err error) {
	text := string(data)
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	*k, err = ParseKeepVersions(text)
	return err
}

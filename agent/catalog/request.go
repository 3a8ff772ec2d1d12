package catalog

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// RequestName is the key of the row that says what came of a request of a client.
type RequestName string

// RequestNamed is the name of a request that a client made at a time, under an id that it uses for no other.
func RequestNamed(at time.Time, id [16]byte) RequestName {
	// The time in front keeps the rows in the order Expire forgets them.
	return RequestName(fmt.Sprintf("%s%016x/%s", schema.PrefixRequest, max(0, at.UnixMilli()), hex.EncodeToString(id[:])))
}

// Answered returns what came of a request for an object, and whether anything did: it was carried out. The text is empty for a delete.
// ErrNotActive says that it was given up, and never will be; ErrOtherRequest that its name was used for another object.
func (o *objects) Answered(ctx context.Context, name RequestName, key string) (text []byte, done bool, err error) {
	values, err := o.engine.Read(ctx, string(name))
	if err != nil || values[0] == nil {
		return nil, false, err
	}
	row, err := codec.Decode[request](string(name), values[0])
	switch {
	case err != nil:
	case row.Key != key:
		err = ErrOtherRequest
	case row.State != IntentCommitted:
		err = fmt.Errorf("the request was given up, ask anew under another name: %w", ErrNotActive)
	}
	return row.Answer, err == nil, err
}

// answer leaves rows that say what came of the requests that a change carries out, unless one was carried out before.
func (t *transaction) answer(change *Change) error {
	for i := range change.Answers {
		a := &change.Answers[i]
		if t.values[string(a.Request)] != nil {
			t.violate(StaleDetail{Violation: ViolationRepeated, Key: a.Key})
			continue
		}
		row := request{State: IntentCommitted, At: t.attempt.ledger.now().UnixMilli(), Answer: a.Text, Key: a.Key}
		t.checks = append(t.checks, kv.Check{Key: string(a.Request)})
		t.writes = append(t.writes, kv.Write{Key: string(a.Request), Value: codec.Encode(row)})
	}
	return nil
}

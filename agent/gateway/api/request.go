package api

import (
	"encoding/hex"
	"strings"
	"time"
)

// Request names one change that a client asks for, so that it is made once however often the client asks: a UUID of version 7 (RFC 9562),
// which has the time at which it was made. The zero Request names none.
type Request struct {
	ID [16]byte
}

// IsZero reports whether it names none.
func (r Request) IsZero() bool { return r == Request{} }

// At is when it was made, by the clock of who made it.
func (r Request) At() time.Time {
	var millis int64
	for _, b := range r.ID[:6] {
		millis = millis<<8 | int64(b)
	}
	return time.UnixMilli(millis)
}

// String is the UUID as RFC 9562 writes it.
func (r Request) String() string {
	text := hex.EncodeToString(r.ID[:])
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}

// NewRequest names a change that is asked for at a time; random fills what is not the time.
func NewRequest(at time.Time, random func([]byte)) (r Request) {
	random(r.ID[6:])
	millis := at.UnixMilli()
	for i := range 6 {
		r.ID[i] = byte(millis >> (40 - 8*i))
	}
	r.ID[6] = r.ID[6]&0x0f | 0x70
	r.ID[8] = r.ID[8]&0x3f | 0x80
	return r
}

// RequestSkew is how far the time in the name of a request may be from the gateway's: what came of it is not kept for ever.
const RequestSkew = time.Hour

// ParseRequest reads the name of a request, empty for none.
func ParseRequest(text string, now time.Time) (r Request, err error) {
	if text == "" {
		return r, nil
	}
	digits := strings.ReplaceAll(text, "-", "")
	raw, err := hex.DecodeString(digits)
	if err == nil && len(raw) == len(r.ID) {
		copy(r.ID[:], raw)
	}
	if err != nil || len(raw) != len(r.ID) || r.ID[6]>>4 != 7 || r.ID[8]>>6 != 2 || strings.ToLower(text) != r.String() {
		return Request{}, Refuse(ErrBadRequest,
			"Idempotency-Key is %.60q; want a UUID of version 7, a new one for each change, the same one when it is asked for again", text)
	}
	if off := now.Sub(r.At()).Abs(); off > RequestSkew {
		return Request{}, Refuse(ErrBadRequest, "Idempotency-Key is of %s, and it is %s here: they may be %s apart; set the clocks",
			r.At().UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), RequestSkew)
	}
	return r, nil
}

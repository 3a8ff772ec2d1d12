package form

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What is wrong with a policy, and with a form that it does not allow. The sentences are S3's.
var (
	ErrPolicy  = errors.New("Invalid Policy")
	ErrRefused = errors.New("Invalid according to Policy")

	ErrFileTooLarge = errors.New("the file is larger than the policy allows")
	ErrFileTooSmall = errors.New("the file is smaller than the policy allows")
)

func badPolicy(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPolicy, fmt.Sprintf(format, args...))
}

// Policy is what a form may be.
type Policy struct {
	expires    time.Time
	conditions []condition
	least      int64 // bytes of the file
	most       int64
}

// condition is one of a field.
type condition struct {
	text     string // as it was written
	name     string // of the field, in lower case
	value    string
	isPrefix bool
}

// ParsePolicy reads a policy: JSON in base64.
func ParsePolicy(encoded string) (*Policy, error) {
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, badPolicy("invalid Base64 encoding.")
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, badPolicy("Expecting '{' but found End-of-Input")
	}
	var document map[string]json.RawMessage
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, badPolicy("Invalid JSON.")
	}
	for name := range document {
		if name != "expiration" && name != "conditions" {
			return nil, badPolicy("Unexpected: %.40q", name)
		}
	}
	policy := &Policy{most: math.MaxInt64}
	if policy.expires, err = parseExpiration(document["expiration"]); err != nil {
		return nil, err
	}
	raw, has := document["conditions"]
	if !has {
		return nil, badPolicy("Policy missing conditions.")
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return nil, badPolicy("Invalid 'conditions' value: must be a List.")
	}
	for _, one := range list {
		if err := policy.add(one); err != nil {
			return nil, err
		}
	}
	return policy, nil
}

func parseExpiration(raw json.RawMessage) (time.Time, error) {
	var text string
	if raw == nil {
		return time.Time{}, badPolicy("Policy missing expiration.")
	}
	if json.Unmarshal(raw, &text) != nil {
		return time.Time{}, badPolicy("Invalid JSON.")
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, badPolicy("Invalid 'expiration' value: '%.40s'", text)
	}
	return at, nil
}

// add reads a condition: {"NAME": "VALUE"}, ["eq", "$NAME", "VALUE"], ["starts-with", "$NAME", "VALUE"] or ["content-length-range",
// LEAST, MOST].
func (p *Policy) add(raw json.RawMessage) error {
	written := compact(raw)
	var simple map[string]json.RawMessage
	if json.Unmarshal(raw, &simple) == nil && simple != nil {
		if len(simple) != 1 {
			return badPolicy("Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.")
		}
		for name, raw := range simple {
			value, isText := text(raw)
			if !isText {
				return badPolicy("Invalid Simple-Condition: value must be a string.")
			}
			written = compact(mustEncode([]string{"eq", "$" + name, value}))
			p.conditions = append(p.conditions, condition{written, strings.ToLower(name), value, false})
		}
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return badPolicy("Invalid condition test: must be a List or Object.")
	}
	if len(list) == 0 {
		return badPolicy("Invalid Condition: missing operation identifier.")
	}
	operation, isText := text(list[0])
	operation = strings.ToLower(operation)
	switch {
	case !isText || operation != "eq" && operation != "starts-with" && operation != "content-length-range":
		return badPolicy("Invalid Condition: unknown operation '%.40s'.", operation)
	case len(list) != 3:
		return badPolicy("Invalid %s: wrong number of arguments.", operation)
	case operation == "content-length-range":
		return p.bound(list[1], list[2])
	}
	name, isName := text(list[1])
	value, isValue := text(list[2])
	if !isName || !isValue {
		return badPolicy("Invalid JSON.")
	}
	field, isField := strings.CutPrefix(name, "$")
	if !isField {
		field = "" // which no field is named
	}
	p.conditions = append(p.conditions, condition{written, strings.ToLower(field), value, operation == "starts-with"})
	return nil
}

// bound reads how large the file may be.
func (p *Policy) bound(least, most json.RawMessage) error {
	from, err := number(least)
	to, failed := number(most)
	if err != nil || failed != nil || from > to {
		return badPolicy("Invalid JSON.")
	}
	p.least, p.most = max(p.least, from), min(p.most, to)
	return nil
}

// number reads one that is not negative, as a number or as text.
func number(raw json.RawMessage) (int64, error) {
	digits, isText := text(raw)
	if !isText {
		digits = string(raw)
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	return int64(n), err
}

func text(raw json.RawMessage) (value string, is bool) {
	return value, len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &value) == nil
}

// compact is JSON without spaces.
func compact(raw []byte) string {
	var into bytes.Buffer
	if err := json.Compact(&into, raw); err != nil {
		return string(raw) // it was read before, so that this cannot be
	}
	return into.String()
}

func mustEncode(list []string) []byte {
	var into bytes.Buffer
	encoder := json.NewEncoder(&into)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(list); err != nil {
		panic(err) // invariant: texts can be encoded
	}
	return into.Bytes()
}

// Bound returns a file that fails at the byte that is one more than the policy allows, or where it ends too early.
func (p *Policy) Bound(file io.Reader) io.Reader {
	return &sized{from: file, least: p.least, most: p.most}
}

type sized struct {
	from              io.Reader
	came, least, most int64
}

// Read reads what may come.
func (s *sized) Read(into []byte) (int, error) {
	n, err := s.from.Read(into)
	s.came += int64(n)
	switch {
	case s.came > s.most:
		return n, fmt.Errorf("%w: it allows %d bytes at most", ErrFileTooLarge, s.most)
	case errors.Is(err, io.EOF) && s.came < s.least:
		return n, fmt.Errorf("%w: it has %d bytes, and the policy wants %d at least", ErrFileTooSmall, s.came, s.least)
	}
	return n, err
}

// uncovered are the fields that no condition has to be of.
var uncovered = []string{"policy", "x-amz-signature", "file"}

// Check refuses a form for a bucket that the policy does not allow: each condition has to hold, and each field has to have one.
func (p *Policy) Check(fields map[string]string, bucket string, now time.Time) error {
	if !now.Before(p.expires) {
		return fmt.Errorf("%w: Policy expired.", ErrRefused)
	}
	fields = maps.Clone(fields)
	fields["bucket"] = bucket
	covered := map[string]bool{}
	for i := range p.conditions {
		one := &p.conditions[i]
		covered[one.name] = true
		value, has := fields[one.name]
		if !one.holds(value) || !has && one.value != "" || one.name == "" {
			return fmt.Errorf("%w: Policy Condition failed: %.300s", ErrRefused, one.text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !covered[name] && !slices.Contains(uncovered, name) && !strings.HasPrefix(name, "x-ignore-") {
			return fmt.Errorf("%w: Extra input fields: %.80s", ErrRefused, name)
		}
	}
	return nil
}

// holds reports whether a value is as it has to be. A content type may be a list, each of which begins as it has to.
func (c *condition) holds(value string) bool {
	if !c.isPrefix {
		return value == c.value
	}
	if c.name != "content-type" {
		return strings.HasPrefix(value, c.value)
	}
	for one := range strings.SplitSeq(value, ",") {
		if !strings.HasPrefix(strings.TrimSpace(one), c.value) {
			return false
		}
	}
	return true
}

package stripe

import (
	"fmt"
	"strconv"
	"strings"
)

// Scheme protects each stripe of K cells with M parity blocks: any M of the K+M may be lost. Replication rep(r) is
// K = 1, M = r-1. The zero Scheme is invalid.
type Scheme struct {
	K, M int
}

// Limits of the package.
const (
	MaxData    = 64 // largest K and largest number of columns
	MaxParity  = 8  // largest M
	MaxSchemes = 6  // longest ladder
)

// Replicas returns rep(r): r whole copies. rep(1) keeps no redundancy.
func Replicas(r int) Scheme { return Scheme{K: 1, M: r - 1} }

// RS returns rs(k,m): stripes of k data cells and m parity blocks.
func RS(k, m int) Scheme { return Scheme{K: k, M: m} }

// Replication reports whether s keeps whole copies.
func (s Scheme) Replication() bool { return s.K == 1 }

// Overhead returns the bytes stored per byte of data.
func (s Scheme) Overhead() float64 { return float64(s.K+s.M) / float64(s.K) }

// String returns the canonical text: rep(r) where K is 1, else rs(k,m).
func (s Scheme) String() string {
	if s.Replication() {
		return "rep(" + strconv.Itoa(s.M+1) + ")"
	}
	return "rs(" + strconv.Itoa(s.K) + "," + strconv.Itoa(s.M) + ")"
}

// Validate reports what is wrong with s, wrapping ErrScheme.
func (s Scheme) Validate() error {
	problem, cure := s.problem()
	if problem == "" {
		return nil
	}
	return fmt.Errorf("%s: %w: %s; %s", s, ErrScheme, problem, cure)
}

func (s Scheme) problem() (problem, cure string) {
	switch {
	case s.Replication() && s.M < 0:
		return "replication needs at least one copy", "use rep(1) or more"
	case s.Replication() && s.M > MaxParity:
		return "too many copies", fmt.Sprintf("use at most rep(%d)", MaxParity+1)
	case s.K < 1:
		return "a stripe needs at least one data block", fmt.Sprintf("use k from 1 to %d", MaxData)
	case s.K > MaxData:
		return "too many data blocks", fmt.Sprintf("use at most k = %d", MaxData)
	case s.K > 1 && s.M < 1:
		return "several data blocks without parity cannot survive any loss", "use m of at least 1, or rep(1) for data that may be lost"
	case s.M > MaxParity:
		return "too many parity blocks", fmt.Sprintf("use at most m = %d", MaxParity)
	}
	return "", ""
}

// MarshalText returns the canonical text of a valid scheme.
func (s Scheme) MarshalText() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads what ParseScheme reads.
func (s *Scheme) UnmarshalText(text []byte) error {
	parsed, err := ParseScheme(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// Ladder is the list of schemes a class may ever take, distinct, in the order the user gave them.
type Ladder []Scheme

// String returns the canonical text: the schemes joined by commas without spaces.
func (l Ladder) String() string {
	texts := make([]string, len(l))
	for i, scheme := range l {
		texts[i] = scheme.String()
	}
	return strings.Join(texts, ",")
}

// Validate reports what is wrong with l, wrapping ErrScheme.
func (l Ladder) Validate() error {
	if len(l) == 0 {
		return fmt.Errorf("ladder: %w: it names no scheme; name at least one, for example rs(4,2)", ErrScheme)
	}
	if len(l) > MaxSchemes {
		return fmt.Errorf("ladder %s: %w: it names %d schemes; keep at most %d", l, ErrScheme, len(l), MaxSchemes)
	}
	for i, scheme := range l {
		if err := scheme.Validate(); err != nil {
			return fmt.Errorf("ladder: %w", err)
		}
		if l[:i].Contains(scheme) {
			return fmt.Errorf("ladder %s: %w: %s appears twice; name it once", l, ErrScheme, scheme)
		}
	}
	return nil
}

// Width returns the largest K, the fewest columns a group of this ladder can have.
func (l Ladder) Width() int {
	width := 0
	for _, scheme := range l {
		width = max(width, scheme.K)
	}
	return width
}

// MaxParity returns the largest M.
func (l Ladder) MaxParity() int {
	most := 0
	for _, scheme := range l {
		most = max(most, scheme.M)
	}
	return most
}

// Contains reports whether scheme is a step of l.
func (l Ladder) Contains(scheme Scheme) bool {
	for _, step := range l {
		if step == scheme {
			return true
		}
	}
	return false
}

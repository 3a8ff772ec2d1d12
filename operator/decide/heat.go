package decide

import (
	"fmt"
	"math"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/words"
)

// ClassHeat is how often the groups of a class are used, as the gateways report it.
type ClassHeat struct {
	Began    time.Time // when the walk behind the report began: what changed since may be missing
	Complete bool      // the walk covered every group
	Bytes    int64     // of the objects, as their users see them
	Rungs    []RungHeat
	Shadows  *api.Shadows // nil: gateways follow no candidates
}

// RungHeat is what lies under one scheme.
type RungHeat struct {
	Scheme      stripe.Scheme
	Groups      int64
	Bytes       int64 // of the cells: the objects' and what fills the last cells up
	StoredBytes int64
	OffLadder   int64        // of Groups, those written for a ladder without some scheme of the class's
	Buckets     []HeatBucket // ascending, each beginning where the one before ends
}

// HeatBucket is the groups used at least AtLeast and less than Below times a day.
type HeatBucket struct {
	AtLeast, Below float64 // Below is +Inf for the last
	Groups, Bytes  int64
	SettledGroups  int64 // under their scheme for at least the dwell time
	SettledBytes   int64
}

// HeatRange is a range of accesses a day: at least AtLeast, less than Below.
type HeatRange struct {
	AtLeast float64 // 0: from never
	Below   float64 // +Inf: without end
}

// Everything is the range of all heats.
func Everything() HeatRange { return HeatRange{Below: math.Inf(1)} }

// Overlaps reports whether a heat lies in both.
func (r HeatRange) Overlaps(other HeatRange) bool {
	return r.AtLeast < other.Below && other.AtLeast < r.Below
}

func (r HeatRange) within(other HeatRange) bool {
	return other.AtLeast <= r.AtLeast && r.Below <= other.Below
}

// judged is the range that rules see: in the coldest bucket groups count as never used, and in the hottest as used
// without end, so that bounds beyond the buckets still part them.
func (r HeatRange) judged() HeatRange {
	switch {
	case r.AtLeast <= 0:
		return HeatRange{AtLeast: 0, Below: math.SmallestNonzeroFloat64}
	case math.IsInf(r.Below, 1):
		return HeatRange{AtLeast: math.MaxFloat64, Below: r.Below}
	}
	return r
}

// String is "less than 0.5 times a day".
func (r HeatRange) String() string {
	switch below := !math.IsInf(r.Below, 1); {
	case r.AtLeast > 0 && below:
		return fmt.Sprintf("between %s and %s times a day", words.Decimal(r.AtLeast), words.Decimal(r.Below))
	case below:
		return fmt.Sprintf("less than %s times a day", words.Decimal(r.Below))
	case r.AtLeast > 0:
		return fmt.Sprintf("at least %s times a day", words.Decimal(r.AtLeast))
	}
	return "however often"
}

// Selection is the groups a transition may touch.
type Selection struct {
	Backend, Class string
	From           stripe.Scheme
	Heat           HeatRange
}

// Touches reports whether a group can be in both selections.
func (s Selection) Touches(other Selection) bool {
	return s.Backend == other.Backend && s.Class == other.Class && s.From == other.From && s.Heat.Overlaps(other.Heat)
}

// Move is a transition that should exist.
type Move struct {
	Selection
	To      stripe.Scheme
	Settled time.Duration // only groups under From for so long
	Pinned  bool          // it is made for a pin, and ends with it
	Groups  int64         // that move
	Bytes   int64         // of users in them
	Reason  string        // in words
}

// Heating reports whether groups move towards more bytes stored per byte.
func (m *Move) Heating() bool { return m.To.Overhead() > m.From.Overhead() }

// SavedBytes is how many bytes fewer are stored afterwards.
func (m *Move) SavedBytes() int64 {
	return int64(float64(m.Bytes) * (m.From.Overhead() - m.To.Overhead()))
}

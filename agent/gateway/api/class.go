package api

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/stripe"
)

// Class says how the objects under some prefixes are kept: the ladder of schemes they may ever take and how they are
// grouped. A class's ladder and mode apply to groups written from then on; existing groups keep theirs.
type Class struct {
	Name       string
	Ladder     stripe.Ladder
	Default    stripe.Scheme
	Mode       stripe.Mode
	Prefixes   []string      // keys of this class where the client names none; the longest match wins
	PackBelow  int64         // objects smaller than this share groups; 0: none do
	PackDelay  time.Duration // how long a small object waits for company at most
	PackMode   PackMode      // when it waits; empty: auto
	GroupBytes int64         // user bytes per group of a large object
	DeadAtMost int           // percent of the bytes of small objects that may be dead beside them; NeverCompact: any
	HotKeys    *HotKeys      // where small objects lie whose keys are read much; nil: where others do
	Repair     RepairOnRead  // what reads do about lost blocks; empty: wait
	Keep       KeepVersions  // versions of an object that are kept when it is put over
	Expire     time.Duration // after which objects are gone whose put does not say; 0: never
	HalfLife   time.Duration // after which an access counts half
	Dwell      time.Duration // under one scheme before a group counts as settled
	Prices     *RungPrices   // of the ladder's schemes; nil: nobody reckons what candidates would cost
	Expected   bool          // heat is what is to be expected of a group by the use of all of the class, in place of what was counted
	ExpectMean bool          // and of none less than they are used on average
}

// RungPrices are what one byte of a class costs on the rungs of its ladder, hottest first, in any one unit.
type RungPrices struct {
	Stored []float64   `json:"stored"` // for each day
	Use    []float64   `json:"use"`    // for each use of its group, beyond what that costs on the rung where it costs least
	Move   [][]float64 `json:"move"`   // for each move, by rung from and to
}

// HotKeys say where small objects lie whose keys are read much. What they are read counts half after each half-life of the class.
type HotKeys struct {
	Scheme stripe.Scheme // on the ladder, the class's default or hotter
	Reads  int64         // by clients of one gateway, which make a key a hot one; 1 or more
}

// HotKeysSpec is the same as a specification has it.
type HotKeysSpec struct {
	Scheme string `json:"scheme"`
	Reads  int64  `json:"reads"`
}

// PackMode says when small objects wait for others to share a group with.
type PackMode string

// The modes of packing.
const (
	PackAuto   PackMode = "auto"    // while they come so fast that a row of a group is full within the delay
	PackBatch  PackMode = "batch"   // always
	PackAtOnce PackMode = "at-once" // never: those that come while others are written share a group all the same
)

// RepairOnRead says what a read does about a block that it finds lost or wrong, beside decoding what it needs of it.
type RepairOnRead string

// What reads do about lost blocks.
const (
	RepairWait  RepairOnRead = "wait"  // have it rebuilt now; reads that meet it meanwhile wait for that, for a moment, and need not decode
	RepairWake  RepairOnRead = "wake"  // wake the repair, which rebuilds it when it comes to it
	RepairNever RepairOnRead = "never" // nothing: scrubs and repairs find it
)

// DefaultRepairOnRead is what reads of a class do about lost blocks that does not say.
const DefaultRepairOnRead = RepairWait

// ParseRepairOnRead reads what reads are to do about lost blocks; nothing said is the default.
func ParseRepairOnRead(text string) (RepairOnRead, error) {
	switch mode := RepairOnRead(text); mode {
	case "":
		return DefaultRepairOnRead, nil
	case RepairWait, RepairWake, RepairNever:
		return mode, nil
	}
	return "", fmt.Errorf("%q is no way to repair; use %s, %s or %s", text, RepairWait, RepairWake, RepairNever)
}

// Limits and defaults of a class.
const (
	MaxClassName = 63 // bytes

	MaxRows           = 64       // rows per group: a chunk is that many cells
	MinGroupBytes     = 64 << 10 // smaller groups cost more in records than they hold
	MaxGroupBytes     = 64 << 20 // a group is staged in memory while it is written
	DefaultGroupBytes = 4 << 20

	DefaultPackBelow = 64 << 10 // bytes
	DefaultPackDelay = 5 * time.Millisecond
	MaxPackDelay     = time.Minute

	DefaultDeadAtMost = 15   // percent
	MinDeadAtMost     = 5    // less would be moved again and again for little
	NeverCompact      = 1000 // percent, the greatest there is

	DefaultHalfLife = 24 * time.Hour
	MinHalfLife     = time.Second
	MaxHalfLife     = 10 * 365 * 24 * time.Hour

	DefaultDwell = 6 * time.Hour
	MaxDwell     = 10 * 365 * 24 * time.Hour
)

// ClassSpec declares one class of objects: an entry of a class file, and the body of PUT /v1/classes/{name}. Sizes are
// text such as 64KiB, durations text such as 5ms or 24h. What is empty has the default that ParseClasses names.
type ClassSpec struct {
	Name       string   `json:"name"`
	Ladder     string   `json:"ladder"` // schemes joined by commas, hottest first
	Default    string   `json:"default,omitempty"`
	Mode       string   `json:"mode,omitempty"`
	Prefixes   []string `json:"prefixes,omitempty"`
	PackBelow  string   `json:"packBelow,omitempty"`
	PackDelay  string   `json:"packDelay,omitempty"`
	PackMode   PackMode `json:"packMode,omitempty"`
	GroupBytes string   `json:"groupBytes,omitempty"`
	DeadAtMost *int     `json:"deadAtMostPercent,omitempty"`
	HalfLife   string   `json:"halfLife,omitempty"` // after which an access counts half
	Dwell      string   `json:"dwell,omitempty"`    // under one scheme before a group counts as settled

	HotKeys      *HotKeysSpec `json:"hotKeys,omitempty"`      // where small objects lie whose keys are read much
	RepairOnRead RepairOnRead `json:"repairOnRead,omitempty"` // what reads do about lost blocks
	KeepVersions KeepVersions `json:"keepVersions,omitempty"` // versions of an object that are kept when it is put over
	ExpireAfter  string       `json:"expireAfter,omitempty"`  // how long objects are there whose put does not say

	// Prices have candidates followed as shadows at these prices. Expected has the heat of groups be what is to be expected by the
	// use of all of the class, and groups settled when a move would have paid for itself; it needs prices. Under ExpectMean none is
	// expected to be used less than they are on average; it needs Expected.
	Prices     *RungPrices `json:"prices,omitempty"`
	Expected   bool        `json:"expected,omitempty"`
	ExpectMean bool        `json:"expectMean,omitempty"`
}

// ClassOrigin says who declared a class as it is.
type ClassOrigin string

// The origins of classes. What was declared through the API is not changed by class files any more.
const (
	ClassFromFile ClassOrigin = "file"
	ClassFromAPI  ClassOrigin = "api"
)

// ClassInfo is a class as it is in force.
type ClassInfo struct {
	Name       string      `json:"name"`
	Ladder     string      `json:"ladder"`
	Default    string      `json:"default"`
	Mode       string      `json:"mode"`
	Prefixes   []string    `json:"prefixes"`
	PackBelow  int64       `json:"packBelow"` // bytes; objects smaller than this share groups
	PackDelay  string      `json:"packDelay"` // how long a small object waits for company at most
	PackMode   PackMode    `json:"packMode"`
	GroupBytes int64       `json:"groupBytes"` // user bytes per group of a large object
	DeadAtMost int         `json:"deadAtMostPercent"`
	HalfLife   string      `json:"halfLife"`
	Dwell      string      `json:"dwell"`
	Nodes      int         `json:"nodes"` // distinct nodes a group lies on
	Origin     ClassOrigin `json:"origin"`

	HotKeys      *HotKeysSpec `json:"hotKeys,omitempty"`
	RepairOnRead RepairOnRead `json:"repairOnRead"` // empty: a gateway of an earlier release, whose reads wake the repair
	KeepVersions KeepVersions `json:"keepVersions,omitempty"`
	ExpireAfter  string       `json:"expireAfter,omitempty"` // empty: they are there until they are deleted

	Prices     *RungPrices `json:"prices,omitempty"`
	Expected   bool        `json:"expected,omitempty"`
	ExpectMean bool        `json:"expectMean,omitempty"`
}

type classFile struct {
	Classes []ClassSpec `json:"classes"`
}

// DefaultClasses is what a cluster has that was given no class file: one class for every key.
func DefaultClasses() []Class {
	classes, err := ParseClasses([]byte("classes:\n- {name: default, ladder: 'rep(3),rs(4,2),rs(12,2)', prefixes: ['']}\n"))
	if err != nil {
		panic("the built-in class is invalid: " + err.Error()) // invariant: constant input
	}
	return classes
}

// ParseClasses reads the YAML of a class file and fills in defaults: mode free, packBelow 64KiB, packDelay 5ms,
// groupBytes 4MiB, deadAtMostPercent 15, no hotKeys, repairOnRead wait, no keepVersions and no
// expireAfter, halfLife 24h, dwell 6h, and the first scheme of the ladder.
// Unknown fields are refused.
func ParseClasses(text []byte) ([]Class, error) {
	var file classFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("class file: %w", err)
	}
	if len(file.Classes) == 0 {
		return nil, fmt.Errorf("class file: no classes; give at least one entry under \"classes:\"")
	}
	names, prefixes := map[string]bool{}, map[string]string{}
	var classes []Class
	for i, entry := range file.Classes {
		class, err := entry.Parse()
		if err == nil && names[entry.Name] {
			err = wrong("name", "used twice; class names are unique")
		}
		names[entry.Name] = true
		for _, prefix := range entry.Prefixes {
			if other, taken := prefixes[prefix]; taken && err == nil {
				err = wrong("prefixes", "prefix %q belongs to class %q already; each prefix has one class", prefix, other)
			}
			prefixes[prefix] = entry.Name
		}
		if err != nil {
			return nil, fmt.Errorf("class %d (%q), %w", i+1, entry.Name, err)
		}
		classes = append(classes, class)
	}
	return classes, nil
}

// wrong says what is the matter with a field of a class.
func wrong(field, format string, values ...any) error {
	return fmt.Errorf("%s: %w", field, fmt.Errorf(format, values...))
}

// Parse reads a specification by itself and fills in defaults.
func (spec *ClassSpec) Parse() (class Class, err error) {
	class = Class{Name: spec.Name, Mode: stripe.Mode(spec.Mode), Prefixes: spec.Prefixes}
	if spec.Name == "" || strings.ContainsAny(spec.Name, "/ \t\n") || len(spec.Name) > MaxClassName {
		return class, wrong("name", "want 1 to %d characters without spaces or slashes", MaxClassName)
	}
	for _, prefix := range spec.Prefixes {
		if len(prefix) > MaxKeyBytes {
			return class, wrong("prefixes", "a prefix of %d bytes; a key has at most %d", len(prefix), MaxKeyBytes)
		}
	}
	if err := class.setLadder(spec); err != nil {
		return class, err
	}
	if class.PackBelow, err = parseBytes(spec.PackBelow, DefaultPackBelow); err != nil {
		return class, wrong("packBelow", "%w", err)
	}
	if class.GroupBytes, err = parseBytes(spec.GroupBytes, DefaultGroupBytes); err != nil {
		return class, wrong("groupBytes", "%w", err)
	}
	if class.GroupBytes < MinGroupBytes || class.GroupBytes > MaxGroupBytes {
		return class, wrong("groupBytes", "%d is outside %d to %d bytes", class.GroupBytes, MinGroupBytes, MaxGroupBytes)
	}
	if class.PackBelow > class.GroupBytes {
		return class, wrong("packBelow", "%d is over groupBytes (%d); a small object must fit one column of a group", class.PackBelow, class.GroupBytes)
	}
	if class.PackDelay, err = parseDuration("packDelay", spec.PackDelay, DefaultPackDelay, 0, MaxPackDelay); err != nil {
		return class, err
	}
	switch spec.PackMode {
	case "", PackAuto: // the default, which releases before have not heard of
	case PackBatch, PackAtOnce:
		class.PackMode = spec.PackMode
	default:
		return class, wrong("packMode", "no mode is called %q; use %s, %s or %s", spec.PackMode, PackAuto, PackBatch, PackAtOnce)
	}
	if class.HalfLife, err = parseDuration("halfLife", spec.HalfLife, DefaultHalfLife, MinHalfLife, MaxHalfLife); err != nil {
		return class, err
	}
	if class.Dwell, err = parseDuration("dwell", spec.Dwell, DefaultDwell, 0, MaxDwell); err != nil {
		return class, err
	}
	class.DeadAtMost = DefaultDeadAtMost
	if spec.DeadAtMost != nil {
		class.DeadAtMost = *spec.DeadAtMost
	}
	if class.DeadAtMost < MinDeadAtMost || class.DeadAtMost > NeverCompact {
		return class, wrong("deadAtMostPercent", "%d is outside %d to %d, which has nothing compacted",
			class.DeadAtMost, MinDeadAtMost, NeverCompact)
	}
	if class.HotKeys, err = spec.HotKeys.Parse(class.Ladder, class.Default); err != nil {
		return class, wrong("hotKeys", "%w", err)
	}
	if class.Repair, err = ParseRepairOnRead(string(spec.RepairOnRead)); err != nil {
		return class, wrong("repairOnRead", "%w", err)
	}
	class.Keep = spec.KeepVersions
	if class.Expire, err = parseDuration("expireAfter", spec.ExpireAfter, 0, MinExpireAfter, MaxExpireAfter); err != nil {
		return class, err
	}
	class.Prices, class.Expected, class.ExpectMean = spec.Prices, spec.Expected, spec.ExpectMean
	if class.ExpectMean && !class.Expected {
		return class, wrong("expectMean", "heat is what is counted; give expected too, or take it out")
	}
	if class.Prices == nil {
		if class.Expected {
			return class, wrong("expected", "the class has no prices; give some, or take it out")
		}
		return class, nil
	}
	if rungs := len(class.Prices.Stored); rungs != len(class.Ladder) {
		return class, wrong("prices", "of %d rungs, on a ladder of %d", rungs, len(class.Ladder))
	}
	if err := class.Prices.Check(); err != nil {
		return class, wrong("prices", "%w", err)
	}
	return class, nil
}

// Check reports what cannot be reckoned with: no rungs, tables of other sizes, prices that are negative or no numbers.
func (p *RungPrices) Check() error {
	rungs := len(p.Stored)
	if rungs == 0 || len(p.Use) != rungs || len(p.Move) != rungs {
		return fmt.Errorf("%d rungs are stored, %d used, %d left; give every rung once", rungs, len(p.Use), len(p.Move))
	}
	for _, row := range append([][]float64{p.Stored, p.Use}, p.Move...) {
		if len(row) != rungs {
			return fmt.Errorf("there are %d moves from a rung, for %d rungs", len(row), rungs)
		}
		for _, price := range row {
			if !(price >= 0) || math.IsInf(price, 1) {
				return fmt.Errorf("%v is no price; give 0 or more", price)
			}
		}
	}
	return nil
}

// setLadder reads the codes of a class and checks that groups can be laid out for them.
func (c *Class) setLadder(spec *ClassSpec) (err error) {
	if c.Ladder, err = stripe.ParseLadder(spec.Ladder); err != nil {
		return wrong("ladder", "%w", err)
	}
	c.Default = c.Ladder[0]
	if spec.Default != "" {
		if c.Default, err = stripe.ParseScheme(spec.Default); err != nil {
			return wrong("default", "%w", err)
		}
		if !c.Ladder.Contains(c.Default) {
			return wrong("default", "%s is not on the ladder %s; choose a scheme of the ladder", c.Default, c.Ladder)
		}
	}
	if c.Mode == "" {
		c.Mode = stripe.ModeFree
	}
	layout, err := stripe.NewLayout(c.Ladder, 0, c.Mode)
	if err != nil {
		return wrong("ladder", "%w", err)
	}
	if layout.Rows > MaxRows {
		return wrong("ladder", "%s needs groups of %d rows (at most %d): choose schemes whose k divide the widest one", c.Ladder, layout.Rows, MaxRows)
	}
	return nil
}

func parseDuration(field, text string, absent, least, most time.Duration) (time.Duration, error) {
	if text == "" {
		return absent, nil
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		return 0, wrong(field, "%q is not a duration such as 5ms or 24h", text)
	}
	if duration < least || duration > most {
		return 0, wrong(field, "%s is outside %s to %s", duration, least, most)
	}
	return duration, nil
}

// Spec is the specification that says all that there is to say of a class.
func (c *Class) Spec() ClassSpec {
	bytes := func(n int64) string { return strconv.FormatInt(n, 10) }
	return ClassSpec{
		Name: c.Name, Ladder: c.Ladder.String(), Default: c.Default.String(), Mode: string(c.Mode), Prefixes: c.Prefixes,
		PackBelow: bytes(c.PackBelow), PackDelay: c.PackDelay.String(), PackMode: c.PackMode, GroupBytes: bytes(c.GroupBytes),
		DeadAtMost: c.deadAtMost(), HotKeys: c.HotKeys.Spec(), RepairOnRead: c.repairOnRead(),
		KeepVersions: c.Keep, ExpireAfter: c.expireAfter(), HalfLife: c.HalfLife.String(), Dwell: c.Dwell.String(),
		Prices: c.Prices, Expected: c.Expected, ExpectMean: c.ExpectMean,
	}
}

// deadAtMost is what the specification says of it: nothing of the default, which releases before have not heard of.
func (c *Class) deadAtMost() *int {
	if c.DeadAtMost == DefaultDeadAtMost {
		return nil
	}
	at := c.DeadAtMost
	return &at
}

// repairOnRead is what the specification says of it: nothing of the default, as in deadAtMost.
func (c *Class) repairOnRead() RepairOnRead {
	if c.Repair == DefaultRepairOnRead {
		return ""
	}
	return c.Repair
}

// expireAfter is what is said of it: nothing where objects do not expire.
func (c *Class) expireAfter() string {
	if c.Expire == 0 {
		return ""
	}
	return c.Expire.String()
}

// Info describes the class to clients.
func (c *Class) Info(origin ClassOrigin) ClassInfo {
	return ClassInfo{
		Name: c.Name, Ladder: c.Ladder.String(), Default: c.Default.String(), Mode: string(c.Mode), Prefixes: append([]string{}, c.Prefixes...),
		PackBelow: c.PackBelow, PackDelay: c.PackDelay.String(), PackMode: cmp.Or(c.PackMode, PackAuto), GroupBytes: c.GroupBytes,
		DeadAtMost: c.DeadAtMost, HotKeys: c.HotKeys.Spec(), RepairOnRead: cmp.Or(c.Repair, DefaultRepairOnRead),
		KeepVersions: c.Keep, ExpireAfter: c.expireAfter(),
		HalfLife: c.HalfLife.String(), Dwell: c.Dwell.String(), Nodes: c.Nodes(), Origin: origin,
		Prices: c.Prices, Expected: c.Expected, ExpectMean: c.ExpectMean,
	}
}

func parseBytes(text string, absent int64) (int64, error) {
	if text == "" {
		return absent, nil
	}
	n, err := humanize.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size such as 64KiB or 4MiB", text)
	}
	return int64(n), nil
}

// Nodes is how many distinct nodes a group of the class lies on.
func (c *Class) Nodes() int { return c.Ladder.Width() + c.Ladder.MaxParity() }

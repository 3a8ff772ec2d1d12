package heat

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Class names a class of groups within one Tracker.
type Class uint16

// Defaults and limits.
const (
	// DefaultGroups is how many groups are tracked where Options say nothing.
	DefaultGroups = 1 << 20

	// Parts is how many parts the counters of a Tracker fall into, by group; every Tracker cuts them alike.
	Parts     = 1 << shardBits
	shardBits = 6

	// maxWeight bounds one access, and so how hot a group can be made by mistake.
	maxWeight = 1 << 20
	// negligible is the value below which a group counts as never used: one access, 20 half-lives ago.
	negligible = 1.0 / (1 << 20)
	// maxClasses bounds Class; accesses of further classes count with the half-life of the last.
	maxClasses = 1<<16 - 1
)

const day = 24 * time.Hour

// Options configure a Tracker.
type Options struct {
	Groups int       // most groups tracked at once; default DefaultGroups
	Start  time.Time // any instant at or before the first one handed in; with a monotonic reading, jumps of the wall clock do not matter
}

// Tracker counts accesses. Its methods are safe for concurrent use; those of the hot path, Class and Touch, allocate
// nothing for groups and classes that are known.
type Tracker struct {
	start   time.Time
	limit   int // entries of one shard
	classes atomic.Pointer[classes]
	naming  sync.Mutex // held to change classes
	walk    atomic.Uint32
	shards  [Parts]shard
}

// classes is immutable.
type classes struct {
	byName map[string]Class
	names  []string
	lives  []float64 // half-lives in seconds
}

// shard is a part of the groups, with a lock and a clock of its own.
type shard struct {
	mutex   sync.Mutex
	table   table
	raw     float64 // seconds since the start that were handed in last
	clock   float64 // seconds that have passed: never less than before
	classes []decay
	touched uint64   // raised when the part changes in another way than by ageing
	saved   uint64   // touched as of the last Saved
	_       [40]byte // two shards do not share a cache line
}

// decay is one class in one shard.
type decay struct {
	perSecond float64 // half-lives in a second
	landmark  float64 // in half-lives on the shard's clock: what entries are as of
	now       float64 // scratch of sweeps: what turns an entry into its rate
}

// New returns an empty Tracker.
func New(options Options) *Tracker {
	if options.Groups <= 0 {
		options.Groups = DefaultGroups
	}
	t := &Tracker{start: options.Start, limit: max(1, options.Groups/Parts)}
	t.classes.Store(&classes{byName: map[string]Class{}})
	t.walk.Store(1)
	return t
}

// Class returns the class of that name, which has the half-life given last, or api.DefaultHalfLife.
func (t *Tracker) Class(name string) Class {
	if class, known := t.classes.Load().byName[name]; known {
		return class
	}
	t.naming.Lock()
	defer t.naming.Unlock()
	t.enter(named{name, api.DefaultHalfLife})
	return t.classes.Load().of(name)
}

// of returns the class of a name; the last one where there are too many to have one of its own.
func (c *classes) of(name string) Class {
	if class, known := c.byName[name]; known {
		return class
	}
	return Class(len(c.names) - 1)
}

// named is a class and the half-life it has if it is new.
type named struct {
	name     string
	halfLife time.Duration
}

// enter makes classes known. The caller holds naming.
func (t *Tracker) enter(list ...named) {
	old := t.classes.Load()
	fresh := &classes{byName: maps.Clone(old.byName), names: slices.Clone(old.names), lives: slices.Clone(old.lives)}
	for _, n := range list {
		if _, known := fresh.byName[n.name]; known || len(fresh.names) == maxClasses {
			continue
		}
		fresh.byName[n.name] = Class(len(fresh.names))
		fresh.names = append(fresh.names, n.name)
		fresh.lives = append(fresh.lives, clampLife(n.halfLife).Seconds())
	}
	if len(fresh.names) > len(old.names) {
		t.classes.Store(fresh)
	}
}

func clampLife(halfLife time.Duration) time.Duration {
	return min(max(halfLife, api.MinHalfLife), api.MaxHalfLife)
}

// SetHalfLife gives a class another half-life, between api.MinHalfLife and api.MaxHalfLife. The rates of its groups stay what
// they are now.
func (t *Tracker) SetHalfLife(name string, halfLife time.Duration, now time.Time) {
	t.naming.Lock()
	defer t.naming.Unlock()
	t.enter(named{name, halfLife})
	class := t.classes.Load().of(name)
	old, life := t.classes.Load(), clampLife(halfLife).Seconds()
	if old.lives[class] == life {
		return
	}
	fresh := &classes{byName: old.byName, names: old.names, lives: append([]float64{}, old.lives...)}
	fresh.lives[class] = life
	t.classes.Store(fresh)
	for i := range t.shards {
		t.shards[i].setLife(t, class, life, now)
	}
}

func (s *shard) setLife(t *Tracker, class Class, life float64, now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.advance(t, now)
	if int(class) >= len(s.classes) {
		return // not used here yet: comes with the new half-life
	}
	c := &s.classes[class]
	factor := math.Exp2(c.landmark-s.clock*c.perSecond) * (c.perSecond * life)
	*c = decay{perSecond: 1 / life, landmark: s.clock / life}
	for i := range s.table.slots {
		if e := &s.table.slots[i]; e.sequence != 0 && e.class == class {
			e.own, e.others = e.own*factor, single(float64(e.others)*factor)
		}
	}
	s.touched++
}

// stragglers is by how many seconds callers may come late without being taken for a clock that was set back.
const stragglers = 1

// advance moves the shard's clock on.
func (s *shard) advance(t *Tracker, now time.Time) {
	raw := now.Sub(t.start).Seconds()
	switch passed := raw - s.raw; {
	case passed > 0:
		s.clock += passed
		s.raw = raw
	case passed < -stragglers:
		s.raw = raw // time stands still for the jump, and goes on from there
	}
}

// class returns the decay of a class, whose landmark is near enough for numbers to stay finite.
func (s *shard) class(t *Tracker, class Class) *decay {
	for int(class) >= len(s.classes) {
		perSecond := 1 / t.classes.Load().lives[len(s.classes)]
		s.classes = append(s.classes, decay{perSecond: perSecond, landmark: s.clock * perSecond})
	}
	c := &s.classes[class]
	if s.clock*c.perSecond-c.landmark > farLandmark {
		s.settle(class)
	}
	return c
}

// freshen sees to the landmarks of all classes, so that entries stay where they are until the clock moves on.
func (s *shard) freshen(t *Tracker) {
	for class := range s.classes {
		s.class(t, Class(class))
	}
}

// farLandmark is after how many half-lives a landmark moves on. Values stay far below the largest float32, 2^127.
const farLandmark = 64

// single is a value as an entry has it of other gateways.
func single(value float64) float32 { return float32(min(value, math.MaxFloat32)) }

// second is a moment as an entry has it: the next whole second, so that a group that was used once is not taken to have been used
// for longer than it was.
func second(now time.Time) uint32 {
	at := now.Unix()
	if now.Nanosecond() > 0 {
		at++
	}
	return uint32(min(max(at, 0), math.MaxUint32))
}

// settle moves the landmark of a class to the present, and forgets what has become nothing.
func (s *shard) settle(class Class) {
	c := &s.classes[class]
	present := s.clock * c.perSecond
	shift := -int(min(present-c.landmark, 1<<20)) // by whole powers of two: exact
	s.table.removeIf(func(e *entry) bool {
		if e.class != class {
			return false
		}
		e.own, e.others = math.Ldexp(e.own, shift), single(math.Ldexp(float64(e.others), shift))
		return e.value() < negligible/2
	})
	c.landmark = max(c.landmark-float64(shift), present-1)
}

func (t *Tracker) shardOf(k key) *shard { return &t.shards[k.hash()>>(64-shardBits)] }

// Touch counts an access to a group; weight is 1 for one access. What is not positive is not counted.
func (t *Tracker) Touch(group block.GroupID, class Class, now time.Time, weight float64) {
	k := keyOf(group)
	if !(weight > 0) || k.sequence == 0 {
		return
	}
	s := t.shardOf(k)
	s.mutex.Lock()
	s.advance(t, now)
	c := s.class(t, class)
	added := min(weight, maxWeight) * math.Exp2(s.clock*c.perSecond-c.landmark)
	if e := s.table.get(k); e != nil {
		e.own += added
	} else {
		s.insert(t, entry{sequence: k.sequence, index: k.index, class: class, own: added, first: second(now)})
	}
	s.touched++
	s.mutex.Unlock()
}

// Carry counts for a group what was counted of others in whose place it is, the first of it at first.
func (t *Tracker) Carry(group block.GroupID, class Class, now time.Time, counted float64, first time.Time) {
	k := keyOf(group)
	if !(counted > 0) || k.sequence == 0 {
		return
	}
	s := t.shardOf(k)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.advance(t, now)
	s.add(t, &record{key: k, class: class, first: second(first)}, counted, 0)
	s.touched++
}

// insert adds an entry, in place of the coldest where there is no room.
func (s *shard) insert(t *Tracker, added entry) {
	if s.table.used >= t.limit {
		s.evict(max(1, t.limit/16))
	}
	added.walk = uint16(t.walk.Load())
	s.table.insert(added)
}

// Use is what is known of how a group was used, all gateways together.
type Use struct {
	Rate    float64   // accesses a day
	Counted float64   // the sum over accesses of 2^(-age/halfLife)
	Own     float64   // of that what this Tracker counted itself
	First   time.Time // the first access, to the next second; zero for a group that is not tracked
}

// Rate returns the accesses a day of a group, all gateways together; 0 for one that is not tracked.
func (t *Tracker) Rate(group block.GroupID, now time.Time) float64 { return t.Used(group, now).Rate }

// Used returns how a group was used; nothing for one that is not tracked.
func (t *Tracker) Used(group block.GroupID, now time.Time) Use {
	return t.look(keyOf(group), now, false)
}

func (t *Tracker) look(k key, now time.Time, mark bool) Use {
	s := t.shardOf(k)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.advance(t, now)
	e := s.table.get(k)
	if e == nil {
		return Use{}
	}
	if mark {
		e.walk = uint16(t.walk.Load())
	}
	c := &s.classes[e.class]
	scale := math.Exp2(c.landmark - s.clock*c.perSecond)
	value := e.value() * scale
	return Use{Rate: rateOf(value, c.perSecond), Counted: value, Own: e.own * scale, First: time.Unix(int64(e.first), 0)}
}

// rateOf is value * ln 2 / halfLife, in accesses a day; what is negligible is 0.
func rateOf(value, perSecond float64) float64 {
	if !(value >= negligible) {
		return 0
	}
	return value * math.Ln2 * perSecond * day.Seconds()
}

// Forget drops a group that is no more.
func (t *Tracker) Forget(group block.GroupID) {
	k := keyOf(group)
	s := t.shardOf(k)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.table.get(k) != nil {
		s.table.remove(s.table.find(k))
		s.touched++
	}
}

// Len returns how many groups are tracked, and Bytes how much memory their counters take.
func (t *Tracker) Len() (groups int, bytes int64) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mutex.Lock()
		groups += s.table.used
		bytes += int64(len(s.table.slots)) * entryBytes
		s.mutex.Unlock()
	}
	return groups, bytes
}

// A Walk tells the groups that still exist from those that do not: after Begin, See every group there is, and End
// forgets the tracked ones that were neither seen nor first used meanwhile. One walk runs at a time.
type Walk struct{ tracker *Tracker }

// Begin begins a walk. One that is not ended forgets nothing.
func (t *Tracker) Begin() Walk {
	t.walk.Add(1)
	return Walk{t}
}

// See notes that a group exists, and returns how it was used.
func (w Walk) See(group block.GroupID, now time.Time) Use {
	return w.tracker.look(keyOf(group), now, true)
}

// End forgets the groups that are no more and returns how many those were.
func (w Walk) End() (forgotten int) {
	seen := uint16(w.tracker.walk.Load())
	for i := range w.tracker.shards {
		s := &w.tracker.shards[i]
		s.mutex.Lock()
		if gone := s.table.removeIf(func(e *entry) bool { return e.walk != seen }); gone > 0 {
			forgotten += gone
			s.touched++
		}
		s.mutex.Unlock()
	}
	return forgotten
}

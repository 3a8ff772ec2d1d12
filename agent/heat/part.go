package heat

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// ErrPart says that a part cannot be read.
var ErrPart = errors.New("heat counters are damaged")

// Part is what one Tracker counted itself, of the groups of one part.
type Part struct {
	Index int
	Raw   []byte // nil: no group is worth keeping
	mark  uint64
}

// Part returns a part to be kept somewhere, as of now, for Restore and Merge. ok is false if nothing but time has changed
// it since what was passed to Saved; what was kept then is as good. Groups that count as never used are left out.
func (t *Tracker) Part(index int, now time.Time) (part Part, ok bool) {
	s := &t.shards[index]
	s.mutex.Lock()
	if s.touched == s.saved {
		s.mutex.Unlock()
		return Part{}, false
	}
	s.advance(t, now)
	part = Part{Index: index, mark: s.touched}
	kept := make([]record, 0, s.table.used)
	for i := range s.table.slots {
		e := &s.table.slots[i]
		if e.sequence == 0 {
			continue
		}
		c := &s.classes[e.class]
		if value := e.own * math.Exp2(c.landmark-s.clock*c.perSecond); value >= negligible {
			kept = append(kept, record{key: e.key(), class: e.class, value: value, first: e.first})
		}
	}
	s.mutex.Unlock()
	if len(kept) > 0 {
		part.Raw = t.encode(kept, now)
	}
	return part, true
}

// Saved notes that a part is kept.
func (t *Tracker) Saved(part Part) {
	s := &t.shards[part.Index]
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.saved = max(s.saved, part.mark)
}

// record is one group of a part.
type record struct {
	key   key
	class Class // of the Tracker that reads or writes it
	value float64
	first uint32 // Unix second of the first use
}

// A part is encoded as: version; Unix milliseconds; number of classes, each its name and its half-life in nanoseconds;
// number of groups ascending, each the difference to the sequence before, the index, the class's number in this part, the
// value as a float32 rounded down, and how many seconds before the part's time the group was first used. Numbers are varints,
// the float32 little-endian. Parts of version 1 lack the last: their groups are taken to be in use for firstUnknown.
const (
	partVersion      = 2
	partWithoutFirst = 1
	firstUnknown     = 30 * 24 * time.Hour
)

func (t *Tracker) encode(kept []record, now time.Time) []byte {
	slices.SortFunc(kept, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.key.sequence, b.key.sequence), cmp.Compare(a.key.index, b.key.index))
	})
	known := t.classes.Load()
	numbers, used := map[Class]uint64{}, []Class{}
	for i := range kept {
		if _, seen := numbers[kept[i].class]; !seen {
			numbers[kept[i].class] = uint64(len(used))
			used = append(used, kept[i].class)
		}
	}
	raw := make([]byte, 0, 64+12*len(kept))
	raw = append(raw, partVersion)
	raw = binary.AppendUvarint(raw, uint64(max(0, now.UnixMilli())))
	raw = binary.AppendUvarint(raw, uint64(len(used)))
	for _, class := range used {
		name := known.names[class]
		raw = append(binary.AppendUvarint(raw, uint64(len(name))), name...)
		raw = binary.AppendUvarint(raw, uint64(math.Round(known.lives[class]*float64(time.Second))))
	}
	raw = binary.AppendUvarint(raw, uint64(len(kept)))
	before := uint64(0)
	for i := range kept {
		k := kept[i].key
		raw = binary.AppendUvarint(raw, k.sequence-before)
		raw = binary.AppendUvarint(raw, uint64(k.index))
		raw = binary.AppendUvarint(raw, numbers[kept[i].class])
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(floor32(kept[i].value)))
		raw = binary.AppendUvarint(raw, uint64(max(0, now.Unix()-int64(kept[i].first))))
		before = k.sequence
	}
	return raw
}

// floor32 is the largest float32 that is not more than value.
func floor32(value float64) float32 {
	rounded := float32(min(value, math.MaxFloat32))
	if float64(rounded) > value {
		return math.Nextafter32(rounded, 0)
	}
	return rounded
}

// decode returns the groups of a part as they are now: aged by the wall clock, which may have been set back and then ages
// nothing, and with their rates under the half-lives of today. Classes nobody named before get the part's half-lives.
func (t *Tracker) decode(raw []byte, index int, now time.Time) ([]record, error) {
	in := reader{rest: raw}
	version := in.byte()
	if version != partVersion && version != partWithoutFirst {
		return nil, fmt.Errorf("%w: version %d, this program reads versions %d and %d", ErrPart, version, partWithoutFirst, partVersion)
	}
	written := int64(min(in.number(), math.MaxInt64))
	age := max(0, now.UnixMilli()-written)
	var list []named
	for count := in.number(); count > 0 && in.err == nil; count-- {
		name := string(in.bytes(in.number()))
		list = append(list, named{name, clampLife(time.Duration(min(in.number(), uint64(api.MaxHalfLife))))})
	}
	if in.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPart, in.err)
	}
	classes := t.today(list, float64(age)/1000)
	count := in.number()
	if in.err == nil && count > uint64(len(in.rest)) {
		in.err = errShort
	}
	if in.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPart, in.err)
	}
	records := make([]record, 0, count)
	var last key
	for range count {
		k := key{sequence: last.sequence + in.number()}
		k.index = uint32(in.number())
		number := in.number()
		value := float64(math.Float32frombits(in.uint32()))
		known := uint64(firstUnknown / time.Second)
		if version == partVersion {
			known = in.number()
		}
		switch {
		case in.err != nil:
		case number >= uint64(len(classes)), !(value >= 0), math.IsInf(value, 1), k.sequence == 0,
			k.hash()>>(64-shardBits) != uint64(index), k.sequence < last.sequence, k.sequence == last.sequence && k.index <= last.index:
			in.err = fmt.Errorf("group %d.%d is not in order", k.sequence, k.index)
		default:
			c := classes[number]
			first := second(time.UnixMilli(written).Add(-time.Duration(min(known, math.MaxUint32)) * time.Second))
			records = append(records, record{key: k, class: c.class, value: value * c.factor, first: first})
		}
		if in.err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPart, in.err)
		}
		last = k
	}
	return records, nil
}

// aged is a class of a part: what it is called today, and what turns a value of the part into one of today.
type aged struct {
	class  Class
	factor float64
}

func (t *Tracker) today(list []named, age float64) []aged {
	t.naming.Lock()
	t.enter(list...)
	t.naming.Unlock()
	known := t.classes.Load()
	classes := make([]aged, len(list))
	for i, n := range list {
		class, life := known.of(n.name), n.halfLife.Seconds()
		classes[i] = aged{class, math.Exp2(-age/life) * known.lives[class] / life}
	}
	return classes
}

// Restore adds what an earlier start of this Tracker's gateway had counted of a part to what was counted since.
func (t *Tracker) Restore(index int, raw []byte, now time.Time) error {
	records, err := t.decode(raw, index, now)
	if err != nil {
		return err
	}
	s := &t.shards[index]
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.advance(t, now)
	for i := range records {
		r := &records[i]
		s.add(t, r, r.value, 0)
	}
	return nil
}

// add adds values as of now to the entry of a record.
func (s *shard) add(t *Tracker, r *record, own, others float64) {
	c := s.class(t, r.class)
	scale := math.Exp2(s.clock*c.perSecond - c.landmark)
	if e := s.table.get(r.key); e != nil {
		c := &s.classes[e.class]
		scale = math.Exp2(s.clock*c.perSecond - c.landmark)
		e.own, e.others, e.first = e.own+own*scale, single(float64(e.others)+others*scale), min(e.first, r.first)
	} else if own+others >= negligible {
		s.insert(t, entry{
			sequence: r.key.sequence, index: r.key.index, class: r.class, own: own * scale, others: single(others * scale), first: r.first,
		})
	}
}

// mergeStep is how many slots Merge goes through before it lets others have the lock.
const mergeStep = 1024

// Merge replaces what other gateways counted of a part by the sum of their parts, in whatever order they are given. Parts
// that cannot be read are left out and reported. spent lists those that have nothing left to say.
func (t *Tracker) Merge(index int, parts [][]byte, now time.Time) (spent []int, err error) {
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(parts[a], parts[b]) })
	sums := map[key]record{}
	var errs []error
	for _, i := range order {
		records, err := t.decode(parts[i], index, now)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		worth := false
		for _, r := range records {
			if r.value >= negligible {
				worth = true
				if sum, there := sums[r.key]; there {
					r.value, r.first = r.value+sum.value, min(r.first, sum.first)
				}
				sums[r.key] = r
			}
		}
		if !worth {
			spent = append(spent, i)
		}
	}
	slices.Sort(spent)
	t.shards[index].replaceOthers(t, sums, now)
	return spent, errors.Join(errs...)
}

// replaceOthers gives every entry the sum of others, 0 where there is none, and enters the groups that are new.
func (s *shard) replaceOthers(t *Tracker, sums map[key]record, now time.Time) {
	known := make(map[key]bool, len(sums))
	moved := uint64(0)
	for at := 0; ; {
		s.mutex.Lock()
		s.advance(t, now)
		s.freshen(t)
		if at == 0 || moved != s.table.moved {
			at, moved = 0, s.table.moved // from the start: what was done is done again to the same effect
		}
		end := min(at+mergeStep, len(s.table.slots))
		for ; at < end; at++ {
			e := &s.table.slots[at]
			if e.sequence == 0 || e.others == 0 && len(sums) == 0 {
				continue
			}
			k := e.key()
			c := &s.classes[e.class]
			sum, there := sums[k]
			e.others = single(sum.value * math.Exp2(s.clock*c.perSecond-c.landmark))
			if there {
				e.first = min(e.first, sum.first)
			}
			known[k] = true
		}
		done := at >= len(s.table.slots)
		s.mutex.Unlock()
		if done {
			break
		}
	}
	entered := 0
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for k, r := range sums {
		if known[k] {
			continue
		}
		if e := s.table.get(k); e != nil {
			e.others = 0 // used here for the first time since it was looked for
		}
		s.add(t, &r, 0, r.value)
		if entered++; entered%mergeStep == 0 {
			s.mutex.Unlock()
			s.mutex.Lock()
		}
	}
}

var errShort = errors.New("it ends too early")

// reader takes numbers off a part; after the first failure it returns zeros.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) bytes(n uint64) []byte {
	if r.err != nil || n > uint64(len(r.rest)) {
		r.err = cmp.Or(r.err, errShort)
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() byte {
	if taken := r.bytes(1); taken != nil {
		return taken[0]
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if taken := r.bytes(4); taken != nil {
		return binary.LittleEndian.Uint32(taken)
	}
	return 0
}

func (r *reader) number() uint64 {
	if r.err != nil {
		return 0
	}
	value, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.err = errShort
		return 0
	}
	r.rest = r.rest[n:]
	return value
}

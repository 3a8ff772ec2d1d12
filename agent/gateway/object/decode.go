package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/trace"
)

// decodeBytes is what decoding a fragment takes beside it: k blocks, and another one that is asked for because one of them
// is late, or the bytes decoded beside those of the cell.
func decodeBytes(code *group.Code, f fragment) int64 { return int64(code.Scheme.K+1) * int64(f.length) }

// decode computes a fragment from k other blocks of its stripe once there is memory for them.
func (r *Reader) decode(ctx context.Context, group *catalog.Group, f fragment, call caller) (sharedBuffer, error) {
	g := r.objects
	code, err := g.groups.CodeOf(group)
	if err != nil {
		return sharedBuffer{}, err
	}
	free, err := g.groups.Memory.Decodes.Reserve(ctx, decodeBytes(code, f))
	if err != nil {
		return sharedBuffer{}, err
	}
	defer free()
	return r.decodeWithin(ctx, group, f, call)
}

// decodeWithin is decode in memory that the caller has reserved. The k blocks are all taken under one group record (rule
// 16). It asks the k likeliest first and one more for each that fails.
func (r *Reader) decodeWithin(ctx context.Context, group *catalog.Group, f fragment, call caller) (_ sharedBuffer, err error) {
	ctx, span := trace.Within(ctx, "decode")
	defer func() { span.End(err) }()
	code, err := r.objects.groups.CodeOf(group)
	if err != nil {
		return sharedBuffer{}, err
	}
	columns := code.Layout.Columns
	s := int(code.Partition.StripeOf[f.cell])
	var candidates []survivor
	var data, parities []int
	for _, cell := range code.Partition.Stripes[s] {
		if column := int(cell) % columns; code.Layout.IsEmpty(column) {
			data = append(data, column) // its zeros are at hand
		} else if int(cell) != f.cell || code.Scheme.K == 1 { // under replication it may be a copy that failed
			candidates = append(candidates, survivor{slot: int(cell) % columns, unit: int(cell) / columns})
		}
	}
	for p := range code.Scheme.M {
		candidates = append(candidates, survivor{slot: columns + p, unit: s})
	}
	survivors, err := r.gather(ctx, group, candidates, code.Scheme.K-len(data), f, call)
	if err != nil {
		return sharedBuffer{}, err
	}
	defer release(survivors)
	byIndex := map[stripe.Part][]byte{}
	for _, survivor := range survivors {
		if survivor.slot < columns {
			data = append(data, survivor.slot)
			byIndex[stripe.Part{Index: survivor.slot}] = survivor.data.bytes
		} else {
			parities = append(parities, survivor.slot-columns)
			byIndex[stripe.Part{Parity: true, Index: survivor.slot - columns}] = survivor.data.bytes
		}
	}
	stripeColumns := make([]int, 0, code.Scheme.K)
	for _, cell := range code.Partition.Stripes[s] {
		stripeColumns = append(stripeColumns, int(cell)%columns)
	}
	parts, err := stripe.Decode(code.Scheme, stripeColumns, f.cell%columns, data, parities)
	if err != nil {
		return sharedBuffer{}, fmt.Errorf("decoding a cell of group %s: %w", group.ID, err)
	}
	inputs := make([][]byte, 0, len(parts))
	terms := make([]kernel.Term, 0, len(parts))
	for _, part := range parts {
		if !part.Parity && code.Layout.IsEmpty(part.Index) {
			continue
		}
		terms = append(terms, kernel.Term{Input: len(inputs), Coefficient: part.Coefficient})
		inputs = append(inputs, byIndex[stripe.Part{Parity: part.Parity, Index: part.Index}])
	}
	matrix, err := kernel.Compile(1, len(inputs), terms)
	if err != nil {
		return sharedBuffer{}, fmt.Errorf("compiling a decoder: %w", err)
	}
	output := make([]byte, f.length)
	matrix.Apply([][]byte{output}, inputs)
	return own(output), nil
}

func release(survivors []survivor) {
	for _, survivor := range survivors {
		survivor.data.release()
	}
}

// survivor is one block of a stripe that takes part in a decode.
type survivor struct {
	slot, unit int
	load       int64 // of its node, when it was chosen
	data       sharedBuffer
}

// gather reads the fragment's range from want of the candidates: first what is read for others of the reader's fragments
// anyway, then from the least busy nodes, and last from those known not to answer. One more is asked for each that fails,
// and whenever an answer takes long.
func (r *Reader) gather(ctx context.Context, group *catalog.Group, candidates []survivor, want int, f fragment, call caller) ([]survivor, error) {
	g := r.objects
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		survivor survivor
		err      error
	}
	ordered := slices.Clone(candidates)
	for i := range ordered {
		ordered[i].load = g.loadOf(group, ordered[i])
		// Of copies, which are not shared, the one that is read already is the one that is late.
		if want > 1 && ordered[i].load != math.MaxInt64 && r.shared.covers(rangeOf(group, ordered[i].slot, ordered[i].unit, f.offset), f.length) {
			ordered[i].load = -1 // it costs nothing more
		}
	}
	slices.SortStableFunc(ordered, func(a, b survivor) int { return cmp.Compare(a.load, b.load) })
	answers := make(chan answer)
	ask := func(candidate survivor) {
		go func() {
			data, err := r.readShared(ctx, group, candidate, f, call)
			candidate.data = data
			hand(ctx, answers, answer{survivor: candidate, err: err}, data)
		}()
	}
	var got []survivor
	whole := false
	defer func() {
		if !whole {
			release(got)
		}
	}()
	var failures []error
	asked := 0
	for ; asked < min(want, len(ordered)); asked++ {
		ask(ordered[asked])
	}
	late := time.NewTimer(g.hedge.Delay(time.Now(), f.length))
	defer late.Stop()
	for answered := 0; answered < asked && len(got) < want; {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case result := <-answers:
			answered++
			if result.err == nil {
				got = append(got, result.survivor)
				continue
			}
			failures = append(failures, result.err)
		case now := <-late.C:
			if asked == len(ordered) {
				continue
			}
			late.Reset(g.hedge.Delay(now, f.length))
			if !g.hedge.Take(now, f.length, 1) {
				continue
			}
			g.Counters.Hedges.Add(1)
		}
		if asked < len(ordered) {
			ask(ordered[asked])
			asked++
		}
	}
	if whole = len(got) == want; whole {
		return got, nil
	}
	class := api.ErrDataLoss
	for _, failure := range failures {
		if !member.GoneBlock(failure) {
			class = api.ErrUnavailable // a node that comes back may still have it
		}
	}
	return nil, api.Refuse(class, "group %s: %d of the %d blocks needed to decode could be read: %w", group.ID, len(got), want, errors.Join(failures...))
}

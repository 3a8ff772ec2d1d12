package scrub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/parity"
	"github.com/restripe/restripe/agent/wire"
)

// flaw is one thing that is wrong with a group.
type flaw struct {
	kind       string
	slot, unit int // as in ScrubFinding
	units      []parity.Place
	node       block.NodeID
	text       string
}

// groupAudit is what was seen of one group.
type groupAudit struct {
	group     *catalog.Group
	equations *parity.Equations
	flaws     []flaw
	away      []int // slots whose nodes did not answer
	restless  bool  // it changed each time it was looked at
	network   int64
}

// auditTries is how often a group that changes while it is looked at is looked at again.
const auditTries = 8

// auditGroup looks at every block of a group, deeply or not, and at its parity equations. What is wrong counts only once
// the record was read again and is as it was (rule 15 of the protocol). A group that is gone is nil.
func (s *Scrubber) auditGroup(ctx context.Context, id block.GroupID, deep bool) (*groupAudit, error) {
	for range auditTries {
		view, err := s.catalog.Group(ctx, id)
		if errors.Is(err, catalog.ErrNoGroup) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		audit, err := s.auditRecord(ctx, &view.Group, deep)
		if err != nil {
			return nil, fmt.Errorf("auditing group %s: %w", id, err)
		}
		if len(audit.flaws) == 0 {
			return audit, nil
		}
		again, err := s.catalog.Group(ctx, id)
		if errors.Is(err, catalog.ErrNoGroup) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if again.Generation == view.Generation {
			return audit, nil
		}
	}
	return &groupAudit{restless: true}, nil
}

func (s *Scrubber) auditRecord(ctx context.Context, group *catalog.Group, deep bool) (*groupAudit, error) {
	code, err := s.groups.CodeOf(group)
	if err != nil {
		return nil, err
	}
	equations, err := parity.New(code.Layout, code.Scheme)
	if err != nil {
		return nil, err
	}
	incarnations, err := s.catalog.Incarnations(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading incarnations: %w", err)
	}
	audit := &groupAudit{group: group, equations: equations}
	prints := equations.Unknown()
	var mutex sync.Mutex
	var workers errgroup.Group
	for slot, items := range group.Slots {
		if len(items) == 0 { // an empty column
			continue
		}
		workers.Go(func() error {
			seen, err := s.auditSlot(ctx, group, slot, incarnations, deep)
			mutex.Lock()
			defer mutex.Unlock()
			if err != nil {
				return err
			}
			audit.network += seen.network
			if seen.away {
				audit.away = append(audit.away, slot)
				return nil
			}
			audit.flaws = append(audit.flaws, seen.flaws...)
			for unit, print := range seen.prints {
				if unit < len(prints[slot]) {
					prints[slot][unit] = parity.Unit{Known: true, Print: print}
				}
			}
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(audit.flaws, func(a, b flaw) int { return a.slot - b.slot })
	audit.judge(prints)
	return audit, nil
}

// judge adds what the parity equations say. Wrong units of one slot are one flaw.
func (a *groupAudit) judge(prints parity.Prints) {
	wrong := map[int][]parity.Place{}
	for _, s := range a.equations.Judge(prints) {
		switch {
		case !s.Broken:
		case len(s.Wrong) > 0:
			for _, place := range s.Wrong {
				wrong[place.Slot] = append(wrong[place.Slot], place)
			}
		default:
			a.flaws = append(a.flaws, flaw{kind: api.FindingParity, slot: -1, unit: s.Index, units: a.equations.Members(s.Index), text: a.untold(s)})
		}
	}
	for slot := range a.group.Slots {
		if places := wrong[slot]; len(places) > 0 {
			item, _ := a.group.Find(slot, places[0].Unit)
			a.flaws = append(a.flaws, flaw{
				kind: api.FindingParity, slot: slot, unit: places[0].Unit, units: places, node: item.Node,
				text: fmt.Sprintf("%d units match their checksums and contradict the other blocks of their stripes", len(places)),
			})
		}
	}
}

// untold says why a wrong block could not be told from the right ones.
func (a *groupAudit) untold(s parity.Stripe) string {
	text := fmt.Sprintf("a parity equation of stripe %d does not hold though every checksum matches, and it cannot be told which block is wrong: ", s.Index)
	if s.Checks == 1 {
		return text + "one equation shows that something is wrong and not what; with two or more one wrong block is found"
	}
	return text + fmt.Sprintf("more blocks are wrong than %d equations can tell", s.Checks)
}

// slotAudit is what one node said of a slot.
type slotAudit struct {
	away    bool
	flaws   []flaw
	prints  map[int]block.Fingerprint // of the units that are as they should be by themselves
	network int64
}

func (s *Scrubber) auditSlot(ctx context.Context, group *catalog.Group, slot int, incarnations map[block.NodeID]block.Incarnation, deep bool) (*slotAudit, error) {
	seen := &slotAudit{prints: map[int]block.Fingerprint{}}
	node := group.Slots[slot][0].Node
	whole := func(kind, format string, arguments ...any) *slotAudit {
		var units []parity.Place
		for _, item := range group.Slots[slot] {
			units = append(units, placesOf(slot, item)...)
		}
		seen.flaws = append(seen.flaws, flaw{kind: kind, slot: slot, unit: -1, units: units, node: node, text: fmt.Sprintf(format, arguments...)})
		return seen
	}
	asked := map[block.NodeID][]block.Address{} // one node, but for a slot that is on its way to another
	for _, item := range group.Slots[slot] {
		if item.Incarnation != incarnations[item.Node] {
			return whole(api.FindingLost, "the store of node %s has lost its contents since", item.Node), nil
		}
		if address := group.Address(slot, item); !slices.Contains(asked[item.Node], address) {
			asked[item.Node] = append(asked[item.Node], address)
		}
	}
	var answer wire.InspectReply
	for id, addresses := range asked {
		request := wire.InspectRequest{Addresses: addresses, Deep: deep}
		var reply wire.InspectReply
		_, err := s.agents.Call(ctx, id, wire.OpInspect, request, nil, &reply)
		switch {
		case err != nil && member.GoneBlock(err):
			return whole(api.FindingLost, "the store of node %s has lost its contents: %v", id, err), nil
		case err != nil:
			s.log.Debug("a node could not be asked for its blocks", "node", id, "group", group.ID, "cause", err)
			seen.away = true
			return seen, ctx.Err()
		}
		for _, message := range []any{request, reply} {
			size, err := wire.FrameBytes(message, 0)
			if err != nil {
				return nil, err
			}
			seen.network += size
		}
		answer.Receipts, answer.Damaged = append(answer.Receipts, reply.Receipts...), append(answer.Damaged, reply.Damaged...)
	}
	seen.compare(group, slot, &answer)
	return seen, nil
}

// compare holds a node's answer against the record.
func (a *slotAudit) compare(group *catalog.Group, slot int, reply *wire.InspectReply) {
	receipts := map[block.Address]*block.Receipt{}
	for i := range reply.Receipts {
		receipts[reply.Receipts[i].Address] = &reply.Receipts[i]
	}
	damaged := map[block.Address]*wire.Damage{}
	for i := range reply.Damaged {
		damaged[reply.Damaged[i].Address] = &reply.Damaged[i]
	}
	for _, item := range group.Slots[slot] {
		address := group.Address(slot, item)
		found := flaw{slot: slot, unit: -1, units: placesOf(slot, item), node: item.Node}
		receipt, damage := receipts[address], damaged[address]
		switch {
		case damage != nil:
			found.kind, found.text, found.unit = api.FindingDamaged, damage.Cause, damage.Unit
		case receipt == nil:
			found.kind, found.text = api.FindingMissing, fmt.Sprintf("the store does not have block %s", address)
		case receipt.Checksum != item.Checksum || item.Base != receipt.FirstUnit || item.First+item.Units > receipt.FirstUnit+receipt.Units || len(receipt.Fingerprints) != receipt.Units:
			found.kind = api.FindingDiffers
			found.text = fmt.Sprintf("block %s has units %d+%d with checksum %08x, the catalog says checksum %08x and units from %d on", address, receipt.FirstUnit, receipt.Units, receipt.Checksum, item.Checksum, item.Base)
		default:
			for unit := item.First; unit < item.First+item.Units; unit++ {
				a.prints[unit] = receipt.Fingerprints[unit-receipt.FirstUnit]
			}
			continue
		}
		a.flaws = append(a.flaws, found)
	}
}

func placesOf(slot int, item catalog.Item) []parity.Place {
	var places []parity.Place
	for unit := item.First; unit < item.First+item.Units; unit++ {
		places = append(places, parity.Place{Slot: slot, Unit: unit})
	}
	return places
}

// condemned are the slots that only the parity equations show to be wrong: a repair would take them for whole.
func (a *groupAudit) condemned() map[int]bool {
	slots := map[int]bool{}
	for _, flaw := range a.flaws {
		if flaw.kind == api.FindingParity && flaw.slot >= 0 {
			slots[flaw.slot] = true
		}
	}
	return slots
}

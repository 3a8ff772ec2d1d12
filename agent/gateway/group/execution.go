package group

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// Execution is a plan bound to one group: positions are nodes, inputs are addresses. Transitions, updates, repairs and
// splices are carried out by the same code.
type Execution struct {
	Group   *catalog.Group
	before  *Code // partition of Plan.From
	after   *Code // partition of Plan.To
	Plan    *stripe.Plan
	Nodes   map[stripe.Position]block.NodeID
	staged  map[int]stagedRange // by slot
	Patches map[int][]CellPatch // by cell; updates only
	Revised string              // key whose revision the manifest raises to the attempt's stamp; updates only
	Lost    map[int]bool        // slots being rebuilt; repairs only
	Away    map[int]bool        // slots on nodes that do not answer; repairs only
	Span    []uint32            // indices of all groups of the attempt; updates of several only

	copies   map[int][]wire.Copy // by position; splices and widenings only
	shifted  int                 // by how many slots the stored parities lie before those of Group; widenings only
	stamp    block.Stamp         // of the attempt
	manifest []byte              // of the group; splices and widenings only, others have what the group carries
	carried  bool                // the manifest is short, and all blocks have it

	PieceBytes int // messages leave in pieces of so many bytes; 0: whole cells
}

// RunPieceBytes is how much of a cell is sent on at a time: small enough that a chain of hops works on all links at once,
// large enough that what surrounds a message does not count.
const RunPieceBytes = 256 << 10

// stagedRange is the run of units a plan stages in a slot.
type stagedRange struct {
	position     stripe.Position
	first, count int
}

// Result is what a run left staged: the slots the group will have, and what it cost.
type Result struct {
	Slots    []catalog.Slot
	Counters wire.Counters
}

// NewExecution binds a plan to the nodes the group's slots lie on. Blocks are staged as those of the group that is given, which has the
// ladder already that a plan takes it to, and homes for all slots.
func (g *Groups) NewExecution(group *catalog.Group, plan *stripe.Plan) (*Execution, error) {
	before, err := g.codes.get(plan.Before, plan.From)
	if err != nil {
		return nil, err
	}
	after, err := g.codes.get(plan.Layout, plan.To)
	if err != nil {
		return nil, err
	}
	return bind(group, plan, before, after)
}

// bind binds a plan that takes a group from one code to another.
func bind(group *catalog.Group, plan *stripe.Plan, before, after *Code) (*Execution, error) {
	r := &Execution{
		Group: group, before: before, after: after, Plan: plan, Nodes: map[stripe.Position]block.NodeID{}, staged: map[int]stagedRange{},
		PieceBytes: RunPieceBytes,
	}
	for slot := range group.Columns + plan.Parities {
		if !after.Layout.IsEmpty(slot) { // nothing is asked of its node, which may be away
			r.Nodes[stripe.Position(slot)] = r.nodeOf(slot)
		}
	}
	for _, program := range plan.Programs {
		units := map[int][]int{}
		for _, row := range program.Rows {
			if row.Message < 0 {
				units[row.Slot] = append(units[row.Slot], row.Unit)
			}
		}
		for slot, list := range units {
			first, last := slices.Min(list), slices.Max(list)
			if last-first+1 != len(list) {
				return nil, fmt.Errorf("plan %s stages units %v of slot %d: not one run", plan.Planner, list, slot)
			}
			r.staged[slot] = stagedRange{position: program.Position, first: first, count: len(list)}
		}
	}
	return r, nil
}

// nodeOf is the node a slot lies on, or will lie on where it has no blocks yet.
func (r *Execution) nodeOf(slot int) block.NodeID {
	if slot < len(r.Group.Slots) && len(r.Group.Slots[slot]) > 0 {
		return r.Group.Slots[slot][0].Node
	}
	return r.Group.Home[slot]
}

// address is that of a block of the group, which may be stored under the slot that it had before.
func (r *Execution) address(slot int, item catalog.Item) block.Address {
	if slot >= r.Group.Columns && item.Stamp != r.stamp {
		slot -= r.shifted
	}
	return r.Group.Address(slot, item)
}

// Blocks announces every block the run stages.
func (r *Execution) Blocks() catalog.BlockSet {
	set := catalog.BlockSet{Group: r.Group.ID}
	for slot := range r.Group.Columns + r.Plan.Parities {
		if staged, ok := r.staged[slot]; ok {
			set.Slots = append(set.Slots, slot)
			set.Nodes = append(set.Nodes, r.Nodes[staged.position])
		}
	}
	return set
}

// Execute executes the run's programs on their nodes, verifies the result by fingerprints, and returns the slots to
// commit. Every block of the result is inspected on the way, which proves that it is there: by the run where it has a program
// at the block's node.
func (g *Groups) Execute(ctx context.Context, attempt *catalog.Attempt, r *Execution) (*Result, error) {
	r.stamp = attempt.Stamp()
	manifest, err := g.manifestOf(ctx, r, attempt.Stamp())
	if err != nil {
		return nil, err
	}
	peers := map[stripe.Position]member.Peer{}
	for position, id := range r.Nodes {
		if peers[position], err = g.agents.Peer(id); err != nil {
			return nil, err
		}
	}
	replies := make([]wire.RunReply, len(r.Plan.Programs))
	workers, runCtx := errgroup.WithContext(ctx)
	for i, program := range r.Plan.Programs {
		request, payload := r.request(attempt.Stamp(), program, peers, manifest)
		workers.Go(func() error {
			_, err := g.agents.Call(runCtx, r.Nodes[program.Position], wire.OpRun, request, payload, &replies[i])
			if TakesNothing(err) {
				err = &NoRoomError{Node: r.Nodes[program.Position], cause: err}
			}
			if err != nil {
				return fmt.Errorf("running position %d of plan %s: %w", program.Position, r.Plan.Planner, err)
			}
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		return nil, fmt.Errorf("group %s: %w", r.Group.ID, err)
	}
	done := &Result{}
	staged, receipts := map[int]*block.Receipt{}, map[block.Address]*block.Receipt{}
	for i := range replies {
		done.Counters.Add(replies[i].Counters)
		for j := range replies[i].Inspected {
			receipt := &replies[i].Inspected[j]
			receipts[receipt.Address] = receipt
		}
		for j := range replies[i].Receipts {
			receipt := &replies[i].Receipts[j]
			staged[receipt.Address.Slot], receipts[receipt.Address] = receipt, receipt
		}
	}
	done.Slots, err = r.result(staged)
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", r.Group.ID, err)
	}
	if err := g.verify(ctx, r, done.Slots, receipts); err != nil {
		return nil, fmt.Errorf("group %s: verifying what was staged: %w", r.Group.ID, err)
	}
	return done, nil
}

// request gives one program its addresses, peers and headers.
func (r *Execution) request(
	stamp block.Stamp, program stripe.Program, peers map[stripe.Position]member.Peer, manifest []byte,
) (wire.RunRequest, []byte) {
	request := wire.RunRequest{
		Stamp: stamp, Group: r.Group.ID, Program: program, Messages: r.Plan.Messages, UnitBytes: r.Group.CellBytes, PieceBytes: r.PieceBytes,
		Peers: map[stripe.Position]string{}, Speaks: map[stripe.Position]uint8{},
	}
	var payload []byte
	request.Copies = r.copies[int(program.Position)]
	slots := map[int]bool{}
	for _, input := range program.Inputs {
		switch input.Kind {
		case stripe.SourceBlock:
			slots[input.Slot] = true
		case stripe.SourcePatch:
			for _, patch := range r.Patches[input.Unit*r.Group.Columns+input.Slot] {
				request.Patches = append(request.Patches, wire.Patch{Slot: input.Slot, Unit: input.Unit, Offset: patch.Offset, Length: len(patch.Data)})
				payload = append(payload, patch.Data...)
			}
			slots[input.Slot] = true
		}
	}
	for slot := range slots {
		for _, item := range r.Group.Slots[slot] {
			request.Blocks = append(request.Blocks, wire.Source{
				Slot: slot, First: item.First, Units: item.Units, Address: r.address(slot, item), Base: item.Base,
			})
		}
	}
	for _, row := range program.Rows {
		if row.Message >= 0 {
			to := r.Plan.Messages[row.Message].To
			request.Peers[to] = peers[to].Address
			if peers[to].Speaks >= wire.VersionShort {
				request.Speaks[to] = peers[to].Speaks
			}
		}
	}
	for slot := range r.Group.Columns + r.Plan.Parities {
		staged, ok := r.staged[slot]
		if !ok || staged.position != program.Position {
			continue
		}
		header := headerFor(r.Group, slot, stamp, staged.first, staged.count)
		header.Node, header.Scheme = r.Nodes[program.Position], r.Plan.To.String()
		header.Span = r.Span
		if r.carried || carriesManifest(slot, r.Group.Columns) {
			header.Manifest = manifest
		}
		request.Stage = append(request.Stage, header)
	}
	if !r.lowersM() {
		request.Inspect = r.staying(program.Position)
	}
	return request, payload
}

// lowersM reports whether the result survives fewer losses than the group does.
func (r *Execution) lowersM() bool { return r.Plan.To.M < r.Plan.From.M }

// reshapes reports whether the parities of the result are of other stripes, so that none of the old ones stays.
func (r *Execution) reshapes() bool { return !r.Plan.KeepsStripes() }

// staying returns the blocks of a slot that will be part of the result as they are, where the node of its position has them.
func (r *Execution) staying(position stripe.Position) (addresses []block.Address) {
	slot := int(position)
	if slot >= min(len(r.Group.Slots), r.after.Slots()) || slot >= r.Group.Columns && r.reshapes() {
		return nil
	}
	covered := r.staged[slot]
	for _, item := range r.Group.Slots[slot] {
		address := r.address(slot, item)
		replaced := item.First >= covered.first && item.First+item.Units <= covered.first+covered.count
		if !replaced && item.Node == r.Nodes[position] && !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// result lays what was staged over what the group has.
func (r *Execution) result(staged map[int]*block.Receipt) ([]catalog.Slot, error) {
	if len(staged) != len(r.staged) {
		return nil, fmt.Errorf("%d blocks were staged, the plan has %d", len(staged), len(r.staged))
	}
	slots := make([]catalog.Slot, r.after.Slots())
	for slot := range slots {
		if slot < len(r.Group.Slots) && !(r.reshapes() && slot >= r.Group.Columns) {
			slots[slot] = slices.Clone(r.Group.Slots[slot])
		}
		if receipt := staged[slot]; receipt != nil {
			slots[slot] = overlay(slots[slot], itemOf(receipt))
		}
		units := 0
		for _, item := range slots[slot] {
			units += item.Units
		}
		if units != r.after.Stored(slot) {
			return nil, fmt.Errorf("slot %d would have %d units, want %d", slot, units, r.after.Stored(slot))
		}
	}
	return slots, nil
}

// overlay puts a new run of units over the ones of a slot, cutting those it covers.
func overlay(slot catalog.Slot, top catalog.Item) catalog.Slot {
	var cut catalog.Slot
	for _, item := range slot {
		if before := min(item.First+item.Units, top.First) - item.First; before > 0 {
			left := item
			left.Units = before
			cut = append(cut, left)
		}
		if after := item.First + item.Units - max(item.First, top.First+top.Units); after > 0 {
			right := item
			right.First, right.Units = item.First+item.Units-after, after
			cut = append(cut, right)
		}
	}
	cut = append(cut, top)
	slices.SortFunc(cut, func(a, b catalog.Item) int { return a.First - b.First })
	return cut
}

// verify collects the fingerprints of every unit of the resulting slots, from the receipts that the run brought and else by
// inspecting their blocks, and checks every parity equation. A block that is not there makes the group not whole. What
// lowers m has the blocks that stay read whole: after it, those that are wrong unnoticed might be more than m.
func (g *Groups) verify(ctx context.Context, r *Execution, slots []catalog.Slot, known map[block.Address]*block.Receipt) error {
	asked := map[block.NodeID][]block.Address{}
	for slot := range slots {
		for _, item := range slots[slot] {
			if address := r.address(slot, item); !r.Away[slot] && known[address] == nil {
				asked[item.Node] = append(asked[item.Node], address)
			}
		}
	}
	receipts, err := g.Inspect(ctx, asked, r.lowersM())
	if err != nil {
		return err
	}
	maps.Copy(receipts, known)
	units := make([][]block.Fingerprint, len(slots))
	for slot := range slots {
		if r.Away[slot] {
			continue
		}
		for _, item := range slots[slot] {
			receipt := receipts[r.address(slot, item)]
			if receipt == nil {
				g.Reported.Add(r.Group.ID)
				return fmt.Errorf("block %s is gone: %w", r.address(slot, item), ErrNotWhole)
			}
			from := item.First - receipt.FirstUnit
			if from < 0 || from+item.Units > len(receipt.Fingerprints) {
				return fmt.Errorf("block %s holds units %d+%d, the catalog says %d+%d: %w", receipt.Address, receipt.FirstUnit, receipt.Units, item.First, item.Units, wire.ErrCorrupt)
			}
			units[slot] = append(units[slot], receipt.Fingerprints[from:from+item.Units]...)
		}
	}
	r.after.addZeros(units)
	if err := r.infer(units); err != nil {
		return err
	}
	return g.prove(r.after, units)
}

// infer gives slots that are away the fingerprints their units must have by those of the survivors, so that the parity
// equations judge the rebuilt slots alone.
func (r *Execution) infer(units [][]block.Fingerprint) error {
	c := r.after
	known := func(slot int) bool { return !r.Away[slot] && !r.Lost[slot] }
	for slot := range r.Away {
		if slot >= c.Layout.Columns {
			continue // after the columns
		}
		for row := range c.Layout.Rows {
			s := c.Partition.StripeOf[row*c.Layout.Columns+slot]
			var columns, data, parities []int
			rowOf := map[int]int{}
			for _, cell := range c.Partition.Stripes[s] {
				column := int(cell) % c.Layout.Columns
				columns, rowOf[column] = append(columns, column), int(cell)/c.Layout.Columns
				if known(column) {
					data = append(data, column)
				}
			}
			for p := range c.Scheme.M {
				if known(c.Layout.Columns + p) {
					parities = append(parities, p)
				}
			}
			parts, err := stripe.Decode(c.Scheme, columns, slot, data, parities)
			if err != nil {
				return fmt.Errorf("inferring fingerprints of slot %d: %w", slot, err)
			}
			coefficients := make([]byte, len(parts))
			prints := make([]block.Fingerprint, len(parts))
			for i, part := range parts {
				coefficients[i] = part.Coefficient
				if part.Parity {
					prints[i] = units[c.Layout.Columns+part.Index][s]
				} else {
					prints[i] = units[part.Index][rowOf[part.Index]]
				}
			}
			units[slot] = append(units[slot], kernel.Combine(coefficients, prints))
		}
	}
	for slot := range r.Away {
		if slot >= c.Layout.Columns {
			units[slot] = c.parityPrints(units, slot-c.Layout.Columns)
		}
	}
	return nil
}

// Inspect asks nodes for receipts of blocks they hold; with deep they read them whole first. Blocks that are absent or
// wrong are absent from the answer.
func (g *Groups) Inspect(ctx context.Context, asked map[block.NodeID][]block.Address, deep bool) (map[block.Address]*block.Receipt, error) {
	replies := make(chan wire.InspectReply, len(asked))
	workers, ctx := errgroup.WithContext(ctx)
	for id, addresses := range asked {
		workers.Go(func() error {
			var reply wire.InspectReply
			if _, err := g.agents.Call(ctx, id, wire.OpInspect, wire.InspectRequest{Addresses: addresses, Deep: deep}, nil, &reply); err != nil {
				return fmt.Errorf("inspecting blocks: %w", err)
			}
			replies <- reply
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	close(replies)
	receipts := map[block.Address]*block.Receipt{}
	for reply := range replies {
		for i := range reply.Receipts {
			receipts[reply.Receipts[i].Address] = &reply.Receipts[i]
		}
	}
	return receipts, nil
}

// carriesManifest reports whether the blocks of a slot carry the manifest of their group: the parities and the first column
// do, so that a copy is left wherever m nodes are lost. Of a group that takes appends the first column does not know of later ones: those
// carry it too.
func carriesManifest(slot, columns int) bool { return slot == 0 || slot >= columns }

// mostCarried is of how many entries a manifest has at most that every block carries which is written into a group that is there: so
// that what was appended does not lose its name with the parities, also where its column was rebuilt.
const mostCarried = 64

// manifestOf reads the manifest that the group carries now, for the blocks that will replace others. It is for a rebuild of
// the catalog only: where no copy can be read the new blocks go without.
func (g *Groups) manifestOf(ctx context.Context, r *Execution, stamp block.Stamp) ([]byte, error) {
	if len(r.staged) == 0 || r.manifest != nil {
		return r.manifest, nil
	}
	entries, err := g.carriedBy(ctx, r.Group, r.Plan.From.M, func(slot int) bool { return r.Lost[slot] || r.Away[slot] })
	if err != nil || entries == nil {
		return nil, err
	}
	for i := range entries {
		if string(entries[i].Key) == r.Revised {
			entries[i].Revision, entries[i].Checksum = stamp, 0
			entries[i].Metadata = block.WithoutDigests(entries[i].Metadata)
		}
	}
	r.carried = len(entries) <= mostCarried
	return block.EncodeManifest(entries)
}

// carriedBy reads the manifest that a group of so many parity rows carries, without asking for some slots; nil where no copy can be read.
func (g *Groups) carriedBy(ctx context.Context, group *catalog.Group, rows int, isAway func(slot int) bool) ([]block.ManifestEntry, error) {
	carriers := make([]int, 0, rows+1)
	for row := range rows {
		carriers = append(carriers, group.Columns+row)
	}
	for _, slot := range append(carriers, 0) { // parities first: every update renews theirs
		if isAway(slot) {
			continue
		}
		entries, err := g.SlotManifest(ctx, group, slot)
		if member.GoneBlock(err) || err == nil && len(entries) == 0 {
			continue
		}
		if errors.Is(err, block.ErrMalformed) {
			g.log.Warn("a manifest cannot be read", "group", group.ID, "slot", slot, "cause", err)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the manifest of group %s: %w", group.ID, err)
		}
		return entries, nil
	}
	g.log.Warn("no manifest of the group can be read; its new blocks go without", "group", group.ID)
	return nil, nil
}

// SlotManifest reads the manifest that the blocks of a slot carry. Updates leave a slot with blocks of several times, each
// of which knows of what was written before it.
func (g *Groups) SlotManifest(ctx context.Context, group *catalog.Group, slot int) ([]block.ManifestEntry, error) {
	var manifests [][]block.ManifestEntry
	read := map[block.Stamp]bool{}
	for _, item := range group.Slots[slot] {
		if read[item.Stamp] {
			continue
		}
		read[item.Stamp] = true
		address := group.Address(slot, item)
		var reply wire.HeaderReply
		if _, err := g.agents.Call(ctx, item.Node, wire.OpHeader, wire.HeaderRequest{Address: address}, nil, &reply); err != nil {
			return nil, fmt.Errorf("reading the header of block %s: %w", address, err)
		}
		if len(reply.Header.Manifest) == 0 {
			continue // a first column of an earlier release
		}
		entries, err := block.DecodeManifest(reply.Header.Manifest)
		if err != nil {
			return nil, fmt.Errorf("block %s: %w", address, err)
		}
		manifests = append(manifests, entries)
	}
	return block.MergeManifests(manifests...), nil
}

// CellPatch is a run of new bytes of a cell; the bytes are the caller's.
type CellPatch struct {
	Offset int
	Data   []byte
}

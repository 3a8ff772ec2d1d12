package group

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/trace"
	"github.com/restripe/restripe/agent/wire"
)

// Window is an open group of small objects whose next ones go into its empty columns. It knows what the parity rows hold, so that
// nothing is read to make the next ones. It belongs to one append at a time.
type Window struct {
	Manifest []block.ManifestEntry // all that was put into the group

	view     *catalog.GroupView // as it was committed last
	code     *Code
	parities [][]byte // by row and stripe, as the encoder orders them; one cell each
}

// NewWindow returns the window that a group will be, once it is committed, that a draft was staged as; nil where nothing is won by
// putting more into it: it has no empty columns or no parities, or a stripe of it has but one cell.
func (g *Groups) NewWindow(d *Draft) *Window {
	layout, scheme := d.Code.Layout, d.Code.Scheme
	if layout.Filled() == layout.Columns || scheme.M == 0 || scheme.K == 1 || len(d.Manifest) > mostCarried {
		return nil
	}
	w := &Window{code: d.Code, Manifest: d.Manifest}
	for range scheme.M * d.Code.Stripes() {
		w.parities = append(w.parities, make([]byte, d.cell))
	}
	w.addAll(d.Columns) // of which empty ones are zeros
	return w
}

// addAll puts columns into the parities, or takes them out again: both is the same.
func (w *Window) addAll(columns [][]byte) {
	for column, data := range columns {
		if data != nil {
			w.add(column, data)
		}
	}
}

// add puts a column into the parities.
func (w *Window) add(column int, data []byte) {
	cell := w.cell()
	for row := range w.code.Layout.Rows {
		w.code.encoder.AccumulateColumn(w.parities, w.code.Layout.CellIndex(row, column), data[row*cell:(row+1)*cell])
	}
}

// Committed tells the window by which attempt its group was committed last.
func (w *Window) Committed(attempt *catalog.Attempt, id block.GroupID) { w.view = attempt.Result(id) }

// Empty are the columns of the group that take objects.
func (w *Window) Empty() (columns []int) {
	for column := range w.code.Layout.Columns {
		if w.code.Layout.IsEmpty(column) {
			columns = append(columns, column)
		}
	}
	return columns
}

func (w *Window) cell() int { return len(w.parities[0]) }

// ColumnBytes is how much fits into a column.
func (w *Window) ColumnBytes() int64 { return int64(w.code.Layout.Rows * w.cell()) }

// Bytes is how much memory the window takes, but for its manifest.
func (w *Window) Bytes() int64 { return int64(len(w.parities) * w.cell()) }

// Takes reports whether the manifest may have so many entries more.
func (w *Window) Takes(entries int) bool { return len(w.Manifest)+entries <= mostCarried }

// Nodes are those that have blocks of the group, or will.
func (w *Window) Nodes() []block.NodeID { return w.view.Home[:w.code.Slots()] }

// View is the group as it was committed last.
func (w *Window) View() *catalog.GroupView { return w.view }

// Append is what goes into a window, and how. After it was carried out the window is of use again once it was committed, or taken back.
type Append struct {
	Window   *Window
	Columns  [][]byte              // what becomes of empty columns, Rows cells each; nil of the others
	Manifest []block.ManifestEntry // what is in them

	run *Execution
}

// NewAppend prepares an append to empty columns of a window.
func (g *Groups) NewAppend(w *Window, columns []int) *Append {
	filled := make([][]byte, w.code.Layout.Columns)
	for _, column := range columns {
		filled[column] = make([]byte, w.ColumnBytes())
	}
	left := slices.DeleteFunc(w.Empty(), func(column int) bool { return filled[column] != nil })
	scheme := w.code.Scheme
	after := w.code.over(w.code.Layout.Whole().Without(left))
	run := &Execution{
		Group: &w.view.Group, before: w.code, after: after, Nodes: map[stripe.Position]block.NodeID{}, staged: map[int]stagedRange{},
		Plan: &stripe.Plan{Planner: "append", Before: after.Layout, Layout: after.Layout, From: scheme, To: scheme, Parities: scheme.M},
	}
	first, last := after.Stripes(), 0
	for _, column := range columns {
		run.staged[column] = stagedRange{stripe.Position(column), 0, after.Layout.Rows}
		for row := range after.Layout.Rows {
			s := int(after.Partition.StripeOf[after.Layout.CellIndex(row, column)])
			first, last = min(first, s), max(last, s)
		}
	}
	for slot := range after.Slots() {
		run.Nodes[stripe.Position(slot)] = run.nodeOf(slot)
		if slot >= after.Layout.Columns {
			run.staged[slot] = stagedRange{stripe.Position(slot), first, last - first + 1}
		}
	}
	return &Append{Window: w, Columns: filled, run: run}
}

// Blocks are those that the append writes: its columns, and of every parity row the stripes that these are in.
func (a *Append) Blocks() catalog.BlockSet { return a.run.Blocks() }

// Append writes what goes into a window, sees that what was there before is there, verifies the parity equations by the fingerprints
// that nodes return, and returns the slots to commit.
func (g *Groups) Append(ctx context.Context, attempt *catalog.Attempt, a *Append) (slots []catalog.Slot, err error) {
	ctx, span := trace.Within(ctx, "append to group")
	if span != nil {
		span.Text("restripe.group", a.run.Group.ID.String())
	}
	defer func() { span.End(err) }()
	w := a.Window
	w.addAll(a.Columns)
	w.Manifest = append(w.Manifest, a.Manifest...)
	manifest, err := block.EncodeManifest(w.Manifest)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	there := map[block.NodeID][]block.Address{}
	receipts := make([]*block.Receipt, a.run.after.Slots())
	workers, working := errgroup.WithContext(ctx)
	for slot := range receipts {
		node := a.run.Nodes[stripe.Position(slot)]
		if stay := a.run.staying(stripe.Position(slot)); len(stay) > 0 {
			there[node] = stay
		}
		staged, is := a.run.staged[slot]
		if !is {
			continue
		}
		header := headerFor(a.run.Group, slot, attempt.Stamp(), staged.first, staged.count)
		header.Node, header.Manifest = node, manifest // of a column too: the first one does not know of it
		payload := header.Pack(a.payload(slot, staged))
		workers.Go(func() error {
			receipts[slot] = new(block.Receipt)
			_, err := g.agents.Call(working, node, wire.OpWrite, wire.WriteRequest{Header: header}, payload, receipts[slot])
			if err != nil {
				return fmt.Errorf("staging slot %d: %w", slot, err)
			}
			return nil
		})
	}
	var known map[block.Address]*block.Receipt
	workers.Go(func() (err error) {
		known, err = g.Inspect(working, there, false)
		return err
	})
	if err := workers.Wait(); err != nil {
		return nil, fmt.Errorf("group %s: %w", a.run.Group.ID, err)
	}
	staged := map[int]*block.Receipt{}
	for slot, receipt := range receipts {
		if receipt != nil {
			staged[slot], known[receipt.Address] = receipt, receipt
		}
	}
	if slots, err = a.run.result(staged); err == nil {
		err = g.verify(ctx, a.run, slots, known)
	}
	if err != nil {
		return nil, fmt.Errorf("group %s: verifying what was appended: %w", a.run.Group.ID, err)
	}
	w.code = a.run.after
	return slots, nil
}

// TakeBack makes the window what it was before an append whose commit was refused, and which is settled. The group is as it was.
func (a *Append) TakeBack() {
	w := a.Window
	w.addAll(a.Columns)
	w.Manifest, w.code = w.Manifest[:len(w.Manifest)-len(a.Manifest)], a.run.before
}

// payload is what a slot stages, which becomes the caller's.
func (a *Append) payload(slot int, staged stagedRange) []byte {
	columns, stripes := a.run.after.Layout.Columns, a.run.after.Stripes()
	if slot < columns {
		return slices.Clone(a.Columns[slot])
	}
	var units []byte
	for s := range staged.count {
		units = append(units, a.Window.parities[(slot-columns)*stripes+staged.first+s]...)
	}
	return units
}

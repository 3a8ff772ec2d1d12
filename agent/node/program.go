package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// program is a run's request, checked and indexed.
type program struct {
	request   *wire.RunRequest
	unitBytes int
	pieces    pieces
	matrix    *kernel.Matrix
	uses      [][]int32      // rows that use each input
	needs     []int          // inputs that go into each row
	reads     []localRead    // ordered by block and unit, each unit once
	cells     []int          // inputs that are put together here
	copies    []localCopy    // of cells
	messages  map[int]int    // input of each message that comes in
	heirs     map[int]int    // by input that comes in: the row it is a term of as it is, where that is a message and there is no other
	summed    []bool         // of each row: messages go into it
	slots     []block.Header // of the staged slots
	rooms     []int          // bytes for the encoded header of each staged slot
	places    []place        // of each row
	short     []bool         // of each row: it is a message to an agent that knows of messages that end before their unit does
	bytes     int64          // of accumulators and patches
}

// place is where a row of the result goes: a unit of a staged slot, or (slot -1) a message.
type place struct{ slot, unit int }

// localRead is one stored unit and what it goes into.
type localRead struct {
	source  int // index into request.Blocks
	unit    int
	whole   int          // input that is the unit itself, or -1
	change  int          // input that is the patch of the unit, or -1
	patches []localPatch // of change
}

type localPatch struct {
	offset int
	from   int // into the run's payload
	length int
}

// Limits of one program.
const (
	maxProgramInputs = 1 << 16
	maxProgramTerms  = 1 << 20
)

// compile checks everything about a request that can be checked without the store, so that a run that starts fails
// only for reasons outside of it.
func compile(blocks *blocks, request *wire.RunRequest, payloadBytes int) (*program, error) {
	p := &program{request: request, unitBytes: request.UnitBytes}
	if p.unitBytes == 0 && len(request.Stage) > 0 {
		p.unitBytes = request.Stage[0].UnitBytes
	}
	if request.Stamp.IsZero() || p.unitBytes < 1 || p.unitBytes > wire.MaxPayloadBytes {
		return nil, fmt.Errorf("%w: a stamp and a unit size of 1 to %d bytes are required", wire.ErrBadRequest, wire.MaxPayloadBytes)
	}
	if request.PieceBytes < 0 || request.PieceBytes > 0 && request.PieceBytes < min(minPieceBytes, p.unitBytes) {
		return nil, fmt.Errorf("%w: pieces of %d bytes; whole units or at least %d bytes are required", wire.ErrBadRequest, request.PieceBytes, minPieceBytes)
	}
	if err := blocks.checkAddresses(request.Inspect); err != nil {
		return nil, err
	}
	p.pieces = piecesOf(p.unitBytes, request.PieceBytes)
	for _, step := range []func() error{
		p.compileRows, func() error { return p.compileStage(blocks) }, p.compilePlaces, func() error { return p.compileInputs(blocks) },
		func() error { return p.compileCopies(blocks) },
		func() error { return p.compilePatches(payloadBytes) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *program) wrong(format string, args ...any) error {
	return fmt.Errorf("%w: program of position %d: %s", wire.ErrBadRequest, p.request.Program.Position, fmt.Sprintf(format, args...))
}

func (p *program) compileRows() error {
	inputs, rows := p.request.Program.Inputs, p.request.Program.Rows
	if len(inputs) > maxProgramInputs || len(rows) > maxProgramInputs {
		return p.wrong("%d inputs and %d rows, at most %d are allowed of each", len(inputs), len(rows), maxProgramInputs)
	}
	var terms []kernel.Term
	p.uses = make([][]int32, len(inputs))
	p.needs = make([]int, len(rows))
	for i, row := range rows {
		if len(row.Terms) == 0 && row.Message >= 0 { // a unit that is made of nothing is zeros
			return p.wrong("row %d combines nothing", i)
		}
		for _, term := range row.Terms {
			if term.Input < 0 || term.Input >= len(inputs) || term.Coefficient == 0 {
				return p.wrong("row %d has a term of input %d with coefficient %d", i, term.Input, term.Coefficient)
			}
			terms = append(terms, kernel.Term{Output: i, Input: term.Input, Coefficient: term.Coefficient})
			p.uses[term.Input] = append(p.uses[term.Input], int32(i))
		}
		if len(terms) > maxProgramTerms {
			return p.wrong("more than %d terms", maxProgramTerms)
		}
		p.needs[i] = len(row.Terms)
	}
	matrix, err := kernel.Compile(len(rows), len(inputs), terms)
	if err != nil {
		return p.wrong("%v", err)
	}
	p.matrix = matrix
	return nil
}

func (p *program) compileStage(blocks *blocks) error {
	seen := map[int]bool{}
	for _, header := range p.request.Stage {
		if err := blocks.checkNew(&header); err != nil {
			return err
		}
		if header.Lengths != nil {
			return p.wrong("block %s has lengths, which are the agent's to find", header.Address())
		}
		if header.Stamp != p.request.Stamp || header.Group != p.request.Group || header.UnitBytes != p.unitBytes || seen[header.Slot] {
			return p.wrong("block %s does not belong to the run, has other units than %d bytes, or comes twice", header.Address(), p.unitBytes)
		}
		seen[header.Slot] = true
		room, err := headRoom(&header)
		if err != nil {
			return err
		}
		p.slots, p.rooms = append(p.slots, header), append(p.rooms, room)
		p.bytes += int64(room) + header.FullBytes()
	}
	return nil
}

func (p *program) compilePlaces() error {
	position := p.request.Program.Position
	made := make([][]bool, len(p.slots))
	for i, header := range p.slots {
		made[i] = make([]bool, header.Units)
	}
	sent := map[int]bool{}
	for i, row := range p.request.Program.Rows {
		if row.Message >= 0 {
			if row.Message >= len(p.request.Messages) || sent[row.Message] {
				return p.wrong("row %d sends message %d, which is not in the plan or is sent twice", i, row.Message)
			}
			sent[row.Message] = true
			message := p.request.Messages[row.Message]
			if message.From != position || message.To == position || p.request.Peers[message.To] == "" {
				return p.wrong("row %d sends message %d from position %d to %d, whose agent %q must be known", i, row.Message, message.From, message.To, p.request.Peers[message.To])
			}
			p.places = append(p.places, place{slot: -1})
			p.short = append(p.short, p.request.Speaks[message.To] >= wire.VersionShort)
			p.bytes += int64(p.unitBytes)
			continue
		}
		slot := slices.IndexFunc(p.slots, func(h block.Header) bool { return h.Slot == row.Slot })
		if slot < 0 || row.Unit < p.slots[slot].FirstUnit || row.Unit >= p.slots[slot].FirstUnit+p.slots[slot].Units {
			return p.wrong("row %d makes unit %d of slot %d, which no block of the run holds", i, row.Unit, row.Slot)
		}
		unit := row.Unit - p.slots[slot].FirstUnit
		if made[slot][unit] {
			return p.wrong("unit %d of slot %d is made twice", row.Unit, row.Slot)
		}
		made[slot][unit] = true
		p.places, p.short = append(p.places, place{slot, unit}), append(p.short, false)
	}
	for i, units := range made {
		if missing := slices.Index(units, false); missing >= 0 {
			return p.wrong("no row makes unit %d of slot %d", p.slots[i].FirstUnit+missing, p.slots[i].Slot)
		}
	}
	return nil
}

func (p *program) compileInputs(blocks *blocks) error {
	p.messages, p.heirs, p.summed = map[int]int{}, map[int]int{}, make([]bool, len(p.needs))
	reads := map[[2]int]*localRead{}
	for i, input := range p.request.Program.Inputs {
		switch input.Kind {
		case stripe.SourceMessage:
			if input.Message < 0 || input.Message >= len(p.request.Messages) || p.request.Messages[input.Message].To != p.request.Program.Position {
				return p.wrong("input %d is message %d, which does not come here", i, input.Message)
			}
			if _, twice := p.messages[input.Message]; twice {
				return p.wrong("message %d is two inputs", input.Message)
			}
			p.messages[input.Message] = i
			for _, row := range p.uses[i] {
				p.summed[row] = true
			}
			if heir, ok := p.heirOf(i); ok {
				p.heirs[i] = heir
			}
		case stripe.SourceBlock, stripe.SourcePatch:
			name := [2]int{input.Slot, input.Unit}
			read := reads[name]
			if read == nil {
				source := slices.IndexFunc(p.request.Blocks, func(s wire.Source) bool {
					return s.Slot == input.Slot && input.Unit >= s.First && input.Unit < s.First+s.Units
				})
				if source < 0 {
					return p.wrong("input %d is unit %d of slot %d, and no block is named for it", i, input.Unit, input.Slot)
				}
				if err := blocks.own(p.request.Blocks[source].Address); err != nil {
					return err
				}
				read = &localRead{source: source, unit: input.Unit, whole: -1, change: -1}
				reads[name] = read
			}
			target := &read.whole
			if input.Kind == stripe.SourcePatch {
				target = &read.change
			}
			if *target >= 0 {
				return p.wrong("inputs %d and %d are the same", *target, i)
			}
			*target = i
		case stripe.SourceCopy: // see compileCopies
		default:
			return p.wrong("input %d is of unknown kind %d", i, input.Kind)
		}
	}
	for _, read := range reads {
		p.reads = append(p.reads, *read)
	}
	slices.SortFunc(p.reads, func(a, b localRead) int {
		if a.source != b.source {
			return a.source - b.source
		}
		return a.unit - b.unit
	})
	return nil
}

// heirOf returns the row that an input is a term of, if that is a message, the only one that uses the input, and takes it
// with coefficient one.
func (p *program) heirOf(input int) (row int, ok bool) {
	if len(p.uses[input]) != 1 {
		return 0, false
	}
	row = int(p.uses[input][0])
	return row, p.places[row].slot < 0 && slices.Contains(p.request.Program.Rows[row].Terms, stripe.Term{Input: input, Coefficient: 1})
}

func (p *program) compilePatches(payloadBytes int) error {
	from := 0
	for i, patch := range p.request.Patches {
		at := slices.IndexFunc(p.reads, func(r localRead) bool {
			return r.change >= 0 && r.unit == patch.Unit && p.request.Blocks[r.source].Slot == patch.Slot
		})
		if at < 0 || patch.Offset < 0 || patch.Length < 0 || patch.Length > p.unitBytes || patch.Offset > p.unitBytes-patch.Length {
			return p.wrong("patch %d, %d bytes at %d of unit %d of slot %d, fits no input", i, patch.Length, patch.Offset, patch.Unit, patch.Slot)
		}
		for _, other := range p.reads[at].patches {
			if patch.Offset < other.offset+other.length && other.offset < patch.Offset+patch.Length {
				return p.wrong("patch %d overlaps another one of unit %d of slot %d", i, patch.Unit, patch.Slot)
			}
		}
		p.reads[at].patches = append(p.reads[at].patches, localPatch{patch.Offset, from, patch.Length})
		from += patch.Length
		if from > payloadBytes {
			break
		}
	}
	if from != payloadBytes {
		return p.wrong("the patches take %d bytes, %d came", from, payloadBytes)
	}
	p.bytes += int64(payloadBytes) + 2*min(int64(len(p.reads))*int64(p.unitBytes), pieceBytes) // and what is read at a time
	return nil
}

// find looks at the headers of the blocks the program reads and refuses the run if one is missing or does not hold
// what the request says.
func (w *worker) find(ctx context.Context, p *program) ([]stored, error) {
	sources := make([]stored, len(p.request.Blocks))
	shown := make([]bool, len(p.request.Blocks)) // there are bytes to read, which shows that the block is there
	for _, read := range p.reads {
		if sources[read.source].Header != nil {
			shown[read.source] = shown[read.source] || sources[read.source].Length(read.unit) > 0
			continue
		}
		source := p.request.Blocks[read.source]
		found, err := w.reader.lookUp(ctx, source.Address)
		if err != nil {
			return nil, err
		}
		h := found.Header
		if h.UnitBytes != p.unitBytes || h.FirstUnit != source.Base || source.First < h.FirstUnit || source.First+source.Units > h.FirstUnit+h.Units {
			return nil, p.wrong("block %s holds units %d+%d of %d bytes, not units %d+%d (base %d) of %d bytes",
				source.Address, h.FirstUnit, h.Units, h.UnitBytes, source.First, source.Units, source.Base, p.unitBytes)
		}
		sources[read.source] = found
		shown[read.source] = found.Length(read.unit) > 0
	}
	for i, source := range sources {
		if source.Header == nil || shown[i] {
			continue
		}
		if _, err := w.reader.readStored(ctx, source.Header.Address()); err != nil { // the header may come from the cache
			return nil, err
		}
	}
	return sources, nil
}

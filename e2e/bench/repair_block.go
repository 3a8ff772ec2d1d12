//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// blockWay is one way to rebuild one block.
type blockWay struct {
	shape  stripe.RepairShape // empty: outside of the product
	whole  bool
	relays bool // a chain of bare relays; else, without a shape, a plain transfer of a block over TCP
}

// String names the way in the table.
func (w blockWay) String() string {
	switch {
	case w.relays:
		return "chain of bare relays"
	case w.shape == "":
		return "plain transfer of one block"
	case w.whole:
		return string(w.shape) + ", whole cells"
	}
	return string(w.shape) + ", pipelined"
}

var blockWays = []blockWay{
	{}, {relays: true}, {shape: stripe.RepairChain}, {shape: stripe.RepairTree}, {shape: stripe.RepairStar}, {shape: stripe.RepairInitiator},
	{shape: stripe.RepairChain, whole: true},
}

// blockPieceBytes is what the gateway cuts cells into.
const blockPieceBytes = 256 << 10

// blockRepair is one repair of one block.
type blockRepair struct {
	scheme  stripe.Scheme
	cell    int // bytes
	rate    int // megabits per second
	round   int
	way     blockWay
	elapsed time.Duration
	sent    int64 // blocks
	cpu     time.Duration
}

// blockRepairs is what was measured of one lost block.
type blockRepairs struct {
	runs []blockRepair
	calm map[int]disturbance // by rate
}

// lostBlock sets the repair of one block, by agents alone, against a plain transfer of it.
func (b *bench) lostBlock(ctx context.Context, n *network, scheme stripe.Scheme) (results blockRepairs, err error) {
	s, err := b.startStage(ctx, n, scheme, b.options.lostCell)
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	results.calm = map[int]disturbance{}
	for _, rate := range b.options.rates {
		if err := n.shape(ctx, s.members, rate); err != nil {
			return results, err
		}
		rounds, d, err := calm(b.options.lostRounds, forCalm(), readProcessorTicks, func(round int) (all []blockRepair, err error) {
			for i := range blockWays {
				one := blockRepair{scheme: scheme, cell: s.cell, rate: rate, way: blockWays[(i+round)%len(blockWays)]}
				if err := s.measure(ctx, &one); err != nil {
					return nil, fmt.Errorf("%s at %d Mb/s: %w", one.way, rate, err)
				}
				b.say("%4d Mb/s  round %d  one block of %s, %s MiB  %-28s %7.2fs", rate, round+1, scheme, mebibytes(int64(s.cell)), one.way, one.elapsed.Seconds())
				all = append(all, one)
			}
			return all, nil
		})
		if err != nil {
			return results, err
		}
		results.calm[rate] = d
		for number, round := range rounds {
			for _, one := range round {
				one.round = number
				results.runs = append(results.runs, one)
			}
		}
		if err := n.free(ctx, s.members); err != nil {
			return results, err
		}
	}
	return results, nil
}

// stage is one group of one stripe on agents without a gateway: column 0 is lost.
type stage struct {
	scheme  stripe.Scheme
	layout  *stripe.Layout
	cell    int
	members []string
	state   string
	agents  []*process
	clients []*wire.Client
	relays  []*process
	sink    *net.TCPListener // where the last of them sends to
	network *network
	stamps  uint64
	want    uint32 // checksum of the lost cell
}

const stageCluster = "bench"

// measure carries the block, or has the agents rebuild it.
func (s *stage) measure(ctx context.Context, one *blockRepair) error {
	before, err := s.cpu()
	if err != nil {
		return err
	}
	switch {
	case one.way.relays:
		one.sent = int64(s.scheme.K)
		one.elapsed, err = s.relayed(ctx)
	case one.way.shape == "":
		one.sent = 1
		one.elapsed, err = s.network.carry(ctx, nodeName(1), nodeName(0), s.cell)
	default:
		one.elapsed, one.sent, err = s.rebuild(ctx, one.way)
	}
	if err != nil {
		return err
	}
	after, err := s.cpu()
	one.cpu = after - before
	return err
}

func (b *bench) startStage(ctx context.Context, n *network, scheme stripe.Scheme, cell int) (_ *stage, err error) {
	b.say("one lost block of %s: starting %d agents", scheme, scheme.K+scheme.M+1)
	s := &stage{scheme: scheme, cell: cell, network: n, stamps: 1}
	if s.layout, err = stripe.NewLayout(stripe.Ladder{scheme}, 0, stripe.ModeFree); err != nil {
		return nil, err
	}
	if s.state, err = b.directory("stage"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	for i := range scheme.K + scheme.M {
		s.members = append(s.members, nodeName(i))
	}
	s.members = append(s.members, proxyName) // position k + m
	for _, name := range s.members {
		if err := s.startAgent(ctx, b.binary, name); err != nil {
			return nil, err
		}
	}
	if err := s.fill(ctx); err != nil {
		return nil, err
	}
	return s, s.startRelays(ctx)
}

func (s *stage) startAgent(ctx context.Context, binary, name string) error {
	store, address := filepath.Join(s.state, name), s.network.address(name)+agentPort
	if err := os.Mkdir(store, 0o755); err != nil {
		return fmt.Errorf("making a store: %w", err)
	}
	agent, err := startProcess(ctx, name, store+".log", binary, "agent", "--id", name, "--store", "file:"+store, "--listen", address, "--allow-remote=anybody")
	if err != nil {
		return err
	}
	client := wire.NewClient(address)
	s.agents, s.clients = append(s.agents, agent), append(s.clients, client)
	var hello wire.HelloReply
	if _, err := client.Call(ctx, wire.OpHello, wire.HelloRequest{}, nil, &hello); err != nil {
		return err
	}
	_, err = client.Call(ctx, wire.OpAttach, wire.AttachRequest{Cluster: stageCluster, Incarnation: hello.Incarnation}, nil, nil)
	return err
}

// fill stores all cells but the lost one, and the parities.
func (s *stage) fill(ctx context.Context) error {
	parities := make([][]byte, s.scheme.M)
	for row := range parities {
		parities[row] = make([]byte, s.cell)
	}
	cell := make([]byte, s.cell)
	for column := range s.scheme.K {
		if _, err := io.ReadFull(bytesOf(column), cell); err != nil {
			return fmt.Errorf("making a cell: %w", err)
		}
		for row := range parities {
			kernel.MultiplyAdd(stripe.Coefficient(row, column), cell, parities[row])
		}
		if column == 0 {
			s.want = kernel.Checksum(cell)
			continue
		}
		if err := s.write(ctx, column, cell); err != nil {
			return err
		}
	}
	for row, parity := range parities {
		if err := s.write(ctx, s.scheme.K+row, parity); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) write(ctx context.Context, slot int, unit []byte) error {
	if slot <= s.scheme.K {
		if err := os.WriteFile(s.cellFile(slot), unit, 0o644); err != nil {
			return fmt.Errorf("keeping a cell for its relay: %w", err)
		}
	}
	_, err := s.clients[slot].Call(ctx, wire.OpWrite, wire.WriteRequest{Header: s.header(slot, 1)}, unit, &block.Receipt{})
	return err
}

func (s *stage) header(slot int, stamp uint64) block.Header {
	return block.Header{
		Group: block.GroupID{Stamp: block.Stamp{Sequence: 1}}, Slot: slot, Stamp: block.Stamp{Sequence: stamp}, Node: block.NodeID(s.members[slot]),
		Class: "bench", Ladder: s.scheme.String(), Mode: string(stripe.ModeFree), LayoutVersion: stripe.LayoutVersion, Columns: s.layout.Columns,
		Scheme: s.scheme.String(), Units: 1, UnitBytes: s.cell,
	}
}

// rebuild has the agents rebuild column 0 under a new stamp, checks what they made, and removes it.
func (s *stage) rebuild(ctx context.Context, way blockWay) (elapsed time.Duration, sent int64, err error) {
	plan, err := stripe.NewShapedRepairPlan(s.layout, s.scheme, way.shape, []int{0}, nil)
	if err != nil {
		return 0, 0, err
	}
	s.stamps++
	peers := map[stripe.Position]string{}
	for position, name := range s.members {
		peers[stripe.Position(position)] = s.network.address(name) + agentPort
	}
	replies := make([]wire.RunReply, len(plan.Programs))
	began := time.Now()
	workers, workCtx := errgroup.WithContext(ctx)
	for i, program := range plan.Programs {
		request := wire.RunRequest{
			Stamp: block.Stamp{Sequence: s.stamps}, Group: block.GroupID{Stamp: block.Stamp{Sequence: 1}}, Program: program,
			Peers: peers, Messages: plan.Messages, UnitBytes: s.cell,
		}
		if !way.whole {
			request.PieceBytes = blockPieceBytes
		}
		switch at := int(program.Position); {
		case at == 0:
			request.Stage = []block.Header{s.header(0, s.stamps)}
		case at < s.layout.Columns+s.scheme.M:
			stored := s.header(at, 1)
			request.Blocks = []wire.Source{{Slot: at, Units: 1, Address: stored.Address()}}
		}
		workers.Go(func() error {
			_, err := s.clients[program.Position].Call(workCtx, wire.OpRun, request, nil, &replies[i])
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		return 0, 0, err
	}
	elapsed = time.Since(began)
	made := s.header(0, s.stamps)
	made.Checksums = []uint32{s.want}
	for i := range replies {
		sent += replies[i].Counters.BlocksSent
		for _, receipt := range replies[i].Receipts {
			if receipt.Checksum != made.ContentChecksum() {
				return 0, 0, fmt.Errorf("%w: the rebuilt block has another checksum", errDifferent)
			}
		}
	}
	_, err = s.clients[0].Call(ctx, wire.OpDelete, wire.DeleteRequest{Addresses: []block.Address{made.Address()}}, nil, nil)
	return elapsed, sent, err
}

// cpu returns the CPU time that agents and relays have used.
func (s *stage) cpu() (total time.Duration, err error) {
	for _, one := range slices.Concat(s.agents, s.relays) {
		used, err := processTime(one.pid())
		if err != nil {
			return 0, fmt.Errorf("%s: %w", one.name, err)
		}
		total += used
	}
	return total, nil
}

func (s *stage) stop() error {
	var errs []error
	for _, client := range s.clients {
		errs = append(errs, client.Close())
	}
	for _, one := range slices.Concat(s.agents, s.relays) {
		errs = append(errs, one.stop())
	}
	if s.sink != nil {
		errs = append(errs, s.sink.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.state))...)
}

// randomBytes are bytes that no link could make less of.
func randomBytes(count int) ([]byte, error) {
	data := make([]byte, count)
	if _, err := rand.Read(data); err != nil {
		return nil, fmt.Errorf("making bytes to carry: %w", err)
	}
	return data, nil
}

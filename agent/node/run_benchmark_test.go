package node_test

import (
	"fmt"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// BenchmarkRepair rebuilds one column of rs(6,2) over loopback, of cells that are full, and of those that hold an eighth of their unit.
func BenchmarkRepair(b *testing.B) {
	agents := several(b, 8, node.Options{})
	index, sequence := uint32(0), uint64(1000)
	for _, shape := range []stripe.RepairShape{stripe.RepairStar, stripe.RepairChain} {
		for _, unitBytes := range []int{8 << 10, 1 << 20, 8 << 20} {
			for _, share := range []int{1, 8} {
				index++
				g := newGroupOf(b, index, agents, "rs(6,2)", stripe.RS(6, 2), unitBytes, func(cell int) []byte {
					unit := make([]byte, unitBytes)
					for i, v := range random(uint64(cell), unitBytes/share) {
						unit[i] = max(v, 1)
					}
					return unit
				})
				plan, err := stripe.NewShapedRepairPlan(g.layout, stripe.RS(6, 2), shape, []int{1}, nil)
				if err != nil {
					b.Fatal(err)
				}
				g.lose(1)
				b.Run(fmt.Sprintf("%s/%dKiB/full:%d", shape, unitBytes>>10, share), func(b *testing.B) {
					b.SetBytes(int64(unitBytes))
					sent := int64(0)
					for b.Loop() {
						sequence++
						requests, payloads := g.requests(plan, stamp(sequence), nil, nil)
						inPieces(requests, 256<<10)
						receipts, counters, err := g.carryOut(requests, payloads)
						if err != nil {
							b.Fatal(err)
						}
						sent += counters.BytesSent
						for _, receipt := range receipts {
							addresses := []block.Address{receipt.Address}
							if err := g.agents[1].call(wire.OpDelete, wire.DeleteRequest{Addresses: addresses}, nil, nil); err != nil {
								b.Fatal(err)
							}
						}
					}
					b.ReportMetric(float64(sent)/float64(b.N), "sent-B/op")
				})
			}
		}
	}
}

// BenchmarkFindEnd looks for the end of a message that holds a KiB, from the end of its unit.
func BenchmarkFindEnd(b *testing.B) {
	for _, unitBytes := range []int{8 << 10, 256 << 10, 16 << 20} {
		b.Run(fmt.Sprintf("%dKiB", unitBytes>>10), func(b *testing.B) {
			unit := make([]byte, unitBytes)
			unit[1<<10-1] = 1
			for b.Loop() {
				if block.Trim(unit) != 1<<10 {
					b.Fatal("the end is elsewhere")
				}
			}
		})
	}
}

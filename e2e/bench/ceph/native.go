//go:build linux && ceph

package main

import (
	"context"
	"fmt"

	"github.com/ceph/go-ceph/rados"
)

// code is a way of keeping objects in a pool of Ceph.
type code struct {
	name         string
	k, m, copies int
}

var (
	code42       = code{name: "4+2", k: 4, m: 2}
	code62       = code{name: "6+2", k: 6, m: 2}
	code122      = code{name: "12+2", k: 12, m: 2}
	codeReplicas = code{name: "3 copies", copies: 3}
)

// chains are the changes of the comparison, one after the other.
var chains = [][]code{{code42, code62, code122}, {code42, code122}, {codeReplicas, code122}}

// native measures Ceph's way: the code of a pool cannot be changed, so there is a new pool for each, and a client that
// copies every object.
func (b *bench) native(ctx context.Context) (steps []step, err error) {
	err = b.withCeph(ctx, func(g *ground) error {
		for i, chain := range chains {
			measured, err := b.nativeChain(ctx, g, i, chain)
			if err != nil {
				return err
			}
			steps = append(steps, measured...)
		}
		return nil
	})
	return steps, err
}

func (b *bench) nativeChain(ctx context.Context, g *ground, chain int, codes []code) (steps []step, err error) {
	name := func(i int) string { return fmt.Sprintf("chain%d-%d", chain, i) }
	var pool *rados.IOContext
	for i, c := range codes {
		next, err := g.createPool(name(i), c.k, c.m, c.copies)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			b.say("Ceph: writing %d objects under %s", len(b.objects), c.name)
			if err := b.objects.fill(ctx, next); err != nil {
				return nil, err
			}
			pool = next
			continue
		}
		s, err := measure(ctx, g.counters, wayNative, codes[i-1].name+" -> "+c.name, func(s *step) error {
			s.clients = b.options.userBytes()
			return b.objects.copy(ctx, pool, next)
		})
		if err != nil {
			return nil, err
		}
		b.say("Ceph: %s in %.1f s", s.change, s.elapsed.Seconds())
		steps = append(steps, s)
		if err := b.objects.check(ctx, next); err != nil {
			return nil, err
		}
		if err := g.deletePool(ctx, name(i-1), pool); err != nil {
			return nil, err
		}
		pool = next
	}
	return steps, g.deletePool(ctx, name(len(codes)-1), pool)
}

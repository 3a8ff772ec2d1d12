package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/restripe/restripe/agent/gateway/api"
)

// The part footprint says what small objects take beside their bytes: in the catalog, and in the memory of a gateway.
const footprintSize = 64

// footprintModes are how objects get into the catalog.
var footprintModes = []api.PackMode{api.PackAtOnce, api.PackBatch}

// footprint is what the catalog has after objects were put in a mode.
type footprint struct {
	mode          api.PackMode
	objects       int
	bytes, groups float64 // of the engine, more than before
}

// held is what a gateway has with so many objects in the catalog.
type held struct {
	objects        int
	resident, peak int64
	heap, catalog  float64 // bytes in use of Go's heap, of the catalog
}

// footprintResults are what the part footprint measured.
type footprintResults struct {
	catalogs []footprint
	held     []held
}

func (b *bench) footprint(ctx context.Context) (results footprintResults, err error) {
	for _, mode := range footprintModes {
		one := footprint{mode: mode, objects: b.writes}
		if err := b.catalogOf(ctx, &one); err != nil {
			return results, err
		}
		results.catalogs = append(results.catalogs, one)
	}
	results.held, err = b.memoryOf(ctx)
	return results, err
}

// catalogOf puts objects of one kind into a cluster of their own.
func (b *bench) catalogOf(ctx context.Context, f *footprint) (err error) {
	classes := putClasses([]string{deadScheme}, []api.PackMode{f.mode})
	c, err := b.start(ctx, "catalog-"+string(f.mode), classes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	before, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	clients := 1
	if f.mode == api.PackBatch {
		clients = clientsAtOnce
	}
	if err := byClients(ctx, clients, f.objects, func(ctx context.Context, i int) error {
		return c.put(ctx, prefixOf(deadScheme, f.mode)+subjectKey(i), bytesOf(i, 0, footprintSize))
	}); err != nil {
		return err
	}
	after, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	f.bytes = after["restripe_catalog_bytes"] - before["restripe_catalog_bytes"]
	f.groups = after["restripe_packing_wait_seconds_count"]
	b.say("footprint: %s: %.0f bytes of the catalog an object, in %.0f groups", f.mode, f.bytes/float64(f.objects), f.groups)
	return nil
}

// memoryOf puts ten times more objects again and again, up to those of the part, and looks at the gateway.
func (b *bench) memoryOf(ctx context.Context) (list []held, err error) {
	c, err := b.start(ctx, "memory", putClasses([]string{deadScheme}, []api.PackMode{api.PackAuto}))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	one, err := c.held(ctx, 0)
	if err != nil {
		return nil, err
	}
	list = append(list, one)
	for done, next := 0, min(b.held, 1000); done < b.held; next = min(b.held, 10*next) {
		if err := atOnce(ctx, next-done, func(ctx context.Context, i int) error {
			return c.put(ctx, prefixOf(deadScheme, api.PackAuto)+fmt.Sprintf("small/%08d", done+i), bytesOf(done+i, 0, footprintSize))
		}); err != nil {
			return nil, err
		}
		done = next
		if one, err = c.held(ctx, done); err != nil {
			return nil, err
		}
		b.say("footprint: %d objects: gateway %s MiB, heap %s MiB, catalog %s MiB", done, mebibytes(float64(one.resident)), mebibytes(one.heap),
			mebibytes(one.catalog))
		list = append(list, one)
	}
	return list, nil
}

// held looks at the gateway.
func (c *cluster) held(ctx context.Context, objects int) (h held, err error) {
	metrics, err := c.metrics(ctx)
	if err != nil {
		return h, err
	}
	h = held{
		objects: objects, heap: metrics["go_memstats_heap_inuse_bytes"], catalog: metrics["restripe_catalog_bytes"],
	}
	if h.resident, err = c.resident(); err != nil {
		return h, err
	}
	h.peak, err = c.peak()
	return h, err
}

// reportFootprint is the section of the part footprint.
func reportFootprint(r footprintResults) string {
	var text strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	alone, batch := &r.catalogs[0], &r.catalogs[1]
	say("## Catalog and memory\n")
	say("%d objects of %d bytes under %s are put by one client in mode at-once, so that each has a group of its own, and by %d in mode",
		alone.objects, footprintSize, deadScheme, clientsAtOnce)
	say("batch, each in a cluster of its own. Bytes are what the engine of the catalog, SQLite, has more than before, by its own count.\n")
	say("| mode | objects a group | bytes an object | bytes to at-once |\n|---|---|---|---|")
	for i := range r.catalogs {
		one := &r.catalogs[i]
		each := float64(one.objects)
		say("| %s | %.1f | %.0f | %.2f |", one.mode, each/one.groups, one.bytes/each, one.bytes/each/(alone.bytes/float64(alone.objects)))
	}
	say("\nAn object that shares its group takes %.2f of the catalog of one that does not.", batch.bytes/float64(batch.objects)/
		(alone.bytes/float64(alone.objects)))
	most := &r.held[len(r.held)-1]
	say("Then %d objects are put by %d clients in mode auto into one cluster. Resident is what the system counts for the process of the",
		most.objects, clientsAtOnce)
	say("gateway, which had been putting until then, at most is the most that it had since it started, heap is what Go's allocator has in")
	say("use, garbage included.\n")
	say("| objects | resident MiB | at most MiB | heap MiB | catalog MiB | catalog bytes an object |\n|---|---|---|---|---|---|")
	empty := r.held[0].catalog
	for i := range r.held {
		one, each := &r.held[i], "-"
		if one.objects > 0 {
			each = fmt.Sprintf("%.0f", (one.catalog-empty)/float64(one.objects))
		}
		say("| %d | %s | %s | %s | %s | %s |", one.objects, mebibytes(float64(one.resident)), mebibytes(float64(one.peak)),
			mebibytes(one.heap), mebibytes(one.catalog), each)
	}
	say("\nThe gateway keeps no table of objects: what grows with their number is on the disk of the catalog. What it has at most follows the")
	say("puts that are under way, not what is stored; BCStore's batch processes keep the metadata of all stripes in memory.")
	return text.String()
}

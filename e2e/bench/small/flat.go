package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// The part flat writes over objects at a steady rate, by a moderately skewed distribution, and looks at the room that they take: Figures
// 15 and 16 of BCStore.
const (
	flatRate = 100  // puts a second, and as many gets
	flatKeys = 4000 // of trafficSize each
	threeWay = "rep(3)"
)

// flatResults are what the part flat measured.
type flatResults struct {
	objects int
	loaded  moment // after all objects were put once
	moments []moment
	copied  float64 // bytes of items for a byte of the same objects under rep(3)
	written float64 // bytes of objects written over
	wire    float64 // meanwhile
	moved   float64
	lasted  time.Duration
}

// flat writes and reads for a while.
func (b *bench) flat(ctx context.Context) (results flatResults, err error) {
	c, err := b.start(ctx, "flat", []api.ClassSpec{{Name: deadClass, Ladder: deadScheme, Prefixes: []string{""}}})
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	results.objects = min(flatKeys, b.objects)
	if err := c.load(ctx, results.objects); err != nil {
		return results, err
	}
	if results.loaded, err = c.moment(ctx); err != nil {
		return results, err
	}
	w := &watch{bench: b, cluster: c, passes: map[int64]api.Compaction{}}
	began := time.Now()
	results.wire, err = c.counted(ctx, func(ctx context.Context) error {
		return w.while(ctx, func(ctx context.Context) error {
			puts, err := b.steady(ctx, c, results.objects)
			results.written = float64(puts * trafficSize)
			return err
		})
	})
	if err != nil {
		return results, err
	}
	results.lasted, results.moments = time.Since(began), w.moments
	metrics, err := c.metrics(ctx)
	if err != nil {
		return results, err
	}
	results.moved = metrics["restripe_compaction_moved_bytes_total"]
	last := &w.moments[len(w.moments)-1]
	b.say("flat: after %.0f s ratio %.3f, in the stores %.3f; %.2f sent and %.2f moved for 1 byte written", results.lasted.Seconds(),
		last.ratio(), last.itemRatio(), results.wire/results.written, results.moved/results.written)
	if results.copied, err = b.copies(ctx, results.objects); err != nil {
		return results, err
	}
	b.say("flat: three copies take %.3f in the stores", results.copied)
	return results, nil
}

// load puts so many objects, once.
func (c *cluster) load(ctx context.Context, objects int) error {
	return atOnce(ctx, objects, func(ctx context.Context, i int) error {
		return c.put(ctx, subjectKey(i), bytesOf(i, 0, trafficSize))
	})
}

// copies puts the same objects under rep(3) into a cluster of their own, where nothing else changes meanwhile, and says what a byte of them
// takes in the stores.
func (b *bench) copies(ctx context.Context, objects int) (ratio float64, err error) {
	c, err := b.start(ctx, "copies", []api.ClassSpec{{Name: deadClass, Ladder: threeWay, Prefixes: []string{""}}})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	before, err := c.storeBytes(ctx)
	if err != nil {
		return 0, err
	}
	if err := c.load(ctx, objects); err != nil {
		return 0, err
	}
	after, err := c.storeBytes(ctx)
	return float64(after-before) / float64(objects*trafficSize), err
}

// steady has puts and gets begin at even distances for the time of the part, and says how many puts there were.
func (b *bench) steady(ctx context.Context, c *cluster, objects int) (puts int, err error) {
	puts = flatRate * b.lasting
	random := rand.New(rand.NewPCG(trafficSeed, 9))
	keys := distribution{theta: moderateKeys.theta, space: float64(objects) / float64(puts)}
	writes, reads := keys.draw(random, puts), keys.draw(random, puts)
	return puts, evenly(ctx, flatRate, puts, func(ctx context.Context, _, i int) error {
		if err := c.put(ctx, subjectKey(writes[i]%objects), bytesOf(writes[i], i+1, trafficSize)); err != nil {
			return err
		}
		_, err := c.get(ctx, subjectKey(reads[i]%objects))
		return err
	})
}

// halves are the moments of the first half of the time, and of the second.
func (r *flatResults) halves() (first, second []moment) {
	middle := len(r.moments) / 2
	return r.moments[:middle], r.moments[middle:]
}

// greatest is the greatest ratio of some moments.
func greatest(moments []moment, ratio func(*moment) float64) (most float64) {
	for i := range moments {
		most = max(most, ratio(&moments[i]))
	}
	return most
}

// mean is the mean ratio of some moments.
func mean(moments []moment, ratio func(*moment) float64) (sum float64) {
	for i := range moments {
		sum += ratio(&moments[i]) / float64(len(moments))
	}
	return sum
}

// reportFlat is the section of the part flat.
func reportFlat(r flatResults) string {
	var text strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	first, second := r.halves()
	bare := float64(deadColumns+deadParity) / deadColumns
	say("## Room over time\n")
	say("BCStore, Figures 15 and 16. %d objects of 4 KiB are put under %s, and then written over for %.0f s at %d puts a second, keys by Zipf",
		r.objects, deadScheme, r.lasted.Seconds(), flatRate)
	say("0.8, with as many gets: every object is written over %.1f times on average. All is as a class has it by default, so that compaction",
		r.written/float64(r.objects*trafficSize))
	say("works beside it by itself. Records are cells and parities of all groups, stores all items of memcached, both for a byte that lives;")
	say("they are looked at every second. Three copies of the same objects take %.3f in the stores of the same run, put once.\n", r.copied)
	say("| | records | stores | records to three copies | stores to three copies | BCStore |\n|---|---|---|---|---|---|")
	row := func(name string, records, stores float64, paper string) {
		say("| %s | %.3f | %.3f | %.2f | %.2f | %s |", name, records, stores, records/3, stores/r.copied, paper)
	}
	row("put once", r.loaded.ratio(), r.loaded.itemRatio(), "0.56 to 0.59")
	row("first half, greatest", greatest(first, (*moment).ratio), greatest(first, (*moment).itemRatio), "rises")
	row("second half, greatest", greatest(second, (*moment).ratio), greatest(second, (*moment).itemRatio), "flat")
	row("second half, mean", mean(second, (*moment).ratio), mean(second, (*moment).itemRatio), "0.56 to 0.59")
	row("the code alone", bare, bare, "")
	say("\nFor a byte written over, %.2f bytes were moved by compaction and %.2f sent in all, gets included; in place it would be 2 + m = %d,",
		r.moved/r.written, r.wire/r.written, 2+deadParity)
	say("without any overhead.\n")
	say("| s before the end | objects MiB | records MiB | ratio | stores MiB | ratio | groups | dead blocks |")
	say("|---|---|---|---|---|---|---|---|")
	for i := range r.moments {
		if m := &r.moments[i]; i == 0 || i == len(r.moments)-1 || i%max(1, len(r.moments)/16) == 0 {
			say("| %.0f | %s | %s | %.3f | %s | %.3f | %d | %d |", -m.at.Seconds(), mebibytes(float64(m.objects)), mebibytes(float64(m.stored)),
				m.ratio(), mebibytes(float64(m.items)), m.itemRatio(), m.groups, m.graves)
		}
	}
	say("\nThe paper has 0.56 to 0.59 of three copies, and the code alone is 0.56. What comes on top under updates is made by their rate: a")
	say("group is left alone for 30 s, and what died in the last seconds is still there, as dead blocks of small objects are kept for 5 s")
	say("(`--grace`) before they are deleted, so that nobody who reads them is cut off. At rest that is over, see")
	say("[Room of what died](#room-of-what-died). The paper collects at once what died, with locks that readers wait for.")
	return text.String()
}

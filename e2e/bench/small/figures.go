package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/restripe/restripe/agent/gateway/api"
)

// The distributions of keys. In the paper keys are drawn of ten million, so that of uniform ones few are put twice.
var (
	uniformKeys  = distribution{name: "uniform", space: 10}
	moderateKeys = distribution{name: "Zipf 0.8", theta: 0.8, space: 10}
	heavyKeys    = distribution{name: "Zipf 0.99", theta: 0.99, space: 10}
	updatedKeys  = distribution{name: "uniform, only updates", space: 0.5}
)

// pairs are runs in mode batch, each followed by the same in place.
func pairs(runs ...traffic) (list []traffic) {
	for _, one := range runs {
		list = append(list, one, one.inPlace())
	}
	return list
}

// codePaper is what BCStore saves in Figure 9, puts and gets counted: in full stripes, and in padded ones.
var codePaper = map[string][2]string{"rs(3,2)": {"32 %", "26 %"}, "rs(4,3)": {"43 %", "36 %"}, "rs(5,4)": {"51 %", "43 %"}}

// codes measures what is sent under different codes: Figure 9.
func (b *bench) codes(ctx context.Context) ([]traffic, error) {
	var runs []traffic
	for _, code := range []traffic{
		{name: "rs32", scheme: "rs(3,2)", k: 3, m: 2}, {name: "rs43", scheme: "rs(4,3)", k: 4, m: 3},
		{name: "rs54", scheme: "rs(5,4)", k: 5, m: 4},
	} {
		for _, mixed := range []bool{false, true} {
			one := code
			one.mode, one.clients, one.keys, one.puts, one.mixed = api.PackBatch, clientsAtOnce, uniformKeys, b.writes, mixed
			if mixed {
				one.name += "-mixed"
			}
			runs = append(runs, one)
		}
	}
	return b.runAll(ctx, "codes", pairs(runs...))
}

// howCounted says how the parts of traffic count.
func howCounted(say func(string, ...any)) {
	say("Sent is what the gateway sends agents and gets from them to write, read, move and verify blocks, and what agents send each other")
	say("for a compaction, for one byte of objects put. The first is counted by the gateway (`restripe_node_call_bytes_total`), with headers")
	say("and answers, the second by the agents, of blocks alone (`restripe_compaction_splice_sent_bytes_total`); TLS is in neither, nor is")
	say("what agents are asked from time to time. In place is mode at-once with one client: every object goes alone, in 1 + m blocks, as an")
	say("update of a block and its m parities sends. As many gets follow as there were puts, then a")
	say("compaction of everything that is dead, by `restripe compact start --everything`, which is the dearest. Saved is by mode batch, of")
	say("what is sent in place; the compaction is counted of mode batch alone there, as in the paper, in which in-place updates leave")
	say("nothing dead. A group is sent anew where one of its keys is put again while it is written: it is counted twice.\n")
}

// reportCodes is the section of the part codes.
func reportCodes(runs []traffic) string {
	var text strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	say("## Sent by code\n")
	say("BCStore, Figure 9. %d puts of uniform keys under each code and mode, in mode batch by %d clients, of 4 KiB each (full) or of %d to",
		runs[0].puts, runs[0].clients, leastSize>>10)
	say("%d KiB (padded), as a parity is as long as the longest column. The paper's numbers are with gets.\n", mostSize>>10)
	howCounted(say)
	text.WriteString(trafficTable(runs, "code, objects", func(t *traffic) string { return t.scheme + ", " + fullness(t) },
		"BCStore, with gets", func(t *traffic) string {
			of := codePaper[t.scheme]
			if t.mixed {
				return of[1]
			}
			return of[0]
		}))
	say("\nPadded objects cost us about what full ones do, where the paper's cost more: a key's column is fixed by its hash there, while here")
	say("the packer puts each object into the emptiest column, so that all columns of a group are about as long. What is sent is more than")
	say("1 + m/k and 1 + m by headers, manifests and the answers of the agents, which each block has once: a group of many objects shares")
	say("them, and objects that go alone do not, so that we save more than the formula. Keys that are put once leave nothing dead in mode")
	say("batch; in place each object takes a group of its own here, and is brought together by a compaction as is its company: that is")
	say("dearer than never to have sent it alone, and is why only a client that waits alone is served so.")
	return text.String()
}

func fullness(t *traffic) string {
	if t.mixed {
		return "padded"
	}
	return "full"
}

// keyPaper says what Figure 8 shows.
var keyPaper = map[string]string{
	uniformKeys.name: "least compaction", moderateKeys.name: "most compaction", heavyKeys.name: "less again",
	updatedKeys.name: "at most in place",
}

// byKeys measures what is sent by the distribution of keys: Figure 8.
func (b *bench) byKeys(ctx context.Context) ([]traffic, error) {
	var runs []traffic
	for i, keys := range []distribution{uniformKeys, moderateKeys, heavyKeys, updatedKeys} {
		runs = append(runs, traffic{
			name: fmt.Sprint("keys", i), scheme: deadScheme, k: deadColumns, m: deadParity, mode: api.PackBatch, clients: clientsAtOnce,
			keys: keys, puts: b.writes, loaded: keys.name == updatedKeys.name,
		})
	}
	return b.runAll(ctx, "keys", pairs(runs...))
}

// reportKeys is the section of the part keys.
func reportKeys(runs []traffic) string {
	var text strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	say("## Sent by keys\n")
	say("BCStore, Figure 8, and the share of its garbage collection. %d puts of 4 KiB under %s for each distribution and mode, of keys of",
		runs[0].puts, deadScheme)
	say("ten times as many, but for the last, whose keys are half as many and are all put once before that is counted. Counted as above.\n")
	text.WriteString(trafficTable(runs, "keys", func(t *traffic) string { return t.keys.name }, "BCStore", func(t *traffic) string {
		return keyPaper[t.keys.name]
	}))
	say("\nShare of the compaction in what puts, gets and the compaction send in mode batch:\n")
	say("| keys | of what is sent | moved for 1 byte put | sent for 1 byte moved |\n|---|---|---|---|")
	for i := 0; i < len(runs); i += 2 {
		one, sent := &runs[i], "-"
		if one.moved > 0 {
			sent = fmt.Sprintf("%.2f", one.compactWire/one.moved)
		}
		say("| %s | %.0f %% | %.2f | %s |", one.keys.name, 100*one.compactWire/(one.putWire+one.getWire+one.compactWire),
			one.moved/one.putBytes, sent)
	}
	say("\nThe order of the paper is uniform, heavy, moderate. A byte that is moved stays on its node and is sent once to the node that makes")
	say("the parities, which sends the others: 1 + (m-1)/k, 1.33 times under %s, where the paper sends m deltas, 2. What cannot stay is",
		deadScheme)
	say("read and written (k+m)/k times, 2.67. By Theorem 1 of the paper updates with garbage collection never send more than in place, as")
	say("at most (k-1)/k bytes are moved for a byte put: with which puts send 1.67 + 0.89 = 2.56 here, of 3 in place. How much may be dead is")
	say("for the class to say (`deadAtMostPercent`); what that costs over time is in [Popularity](#popularity) and")
	say("[Room over time](#room-over-time). Puts of a key that is being put are two groups here, as each has a revision of its own, where")
	say("the paper sends the later alone.")
	return text.String()
}

// batchPaper is what a model of BCStore saves by the number of requests that are batched, puts and gets and garbage collection counted.
var batchPaper = map[int]string{10: "11 %", 50: "30 %", 100: "36 %", 400: "47 %"}

// batchSizes are clients that put at the same time, and so about how many objects are put together.
var batchSizes = []int{1, 10, 50, 100, 400}

// byBatch measures what is sent, and how fast, by how many objects come together: Figure 13.
func (b *bench) byBatch(ctx context.Context) ([]traffic, error) {
	var runs []traffic
	for _, clients := range batchSizes {
		runs = append(runs, traffic{
			name: fmt.Sprint("batch", clients), scheme: deadScheme, k: deadColumns, m: deadParity, mode: api.PackBatch, clients: clients,
			keys: heavyKeys, puts: b.writes,
		})
	}
	return b.runAll(ctx, "batches", append(runs, runs[0].inPlace()))
}

// reportBatches is the section of the part batches.
func reportBatches(runs []traffic) string {
	var text strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	peer := &runs[len(runs)-1]
	say("## Sent by batch\n")
	say("BCStore, Figure 13. %d puts of 4 KiB under %s, keys by Zipf 0.99 of ten times as many, by so many clients in mode batch, each of",
		peer.puts, deadScheme)
	say("which puts one object at a time: what comes within 5 ms, or while other groups are written, is put together. The peer is in place")
	say("in the same run, for all of them. Counted as above. Puts a second are of one pass on a machine with other work, and only tell what")
	say("grows. The paper's numbers are those of a model of it, with gets and garbage collection.\n")
	say("| clients | objects a group | sent for 1 byte put | to in place | saved of puts | with gets | with gets and compaction | BCStore " +
		"| puts a second | to in place |")
	say("|---|---|---|---|---|---|---|---|---|---|")
	for i := range runs {
		one := &runs[i]
		puts, gets, all := one.saved(peer)
		clients, paper := fmt.Sprint(one.clients), batchPaper[one.clients]
		if one == peer {
			clients, all = "1, in place", 0
		}
		if paper == "" {
			paper = "-"
		}
		say("| %s | %.1f | %.2f | %.2f | %.0f %% | %.0f %% | %.0f %% | %s | %.0f | %.1f |", clients, float64(one.puts)/one.groups,
			one.putWire/one.putBytes, one.putWire/one.putBytes/(peer.putWire/peer.putBytes), 100*puts, 100*gets, 100*all, paper, one.rate,
			one.rate/peer.rate)
	}
	say("\nSmall batches save less than large ones for two reasons: fewer objects than columns leave columns empty, whose parities are sent")
	say("all the same, and what a block has beside its bytes is shared by fewer. From some dozens on nothing more is to be saved of puts, as")
	say("1 + m/k is reached. The paper saves on, as it sends a key that is put several times within a batch once; here each put has a")
	say("revision of its own, and goes into a group of its own.")
	return text.String()
}

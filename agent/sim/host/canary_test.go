package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/sim"
)

// canary is a mistake put into the program on purpose: if no seed breaks what it must break, the simulation watches nothing.
type canary struct {
	name   string
	edits  []edit
	breaks []sim.Promise // of which one must be seen to be broken first in some seed; a crash of the guest shows nothing
	from   uint64        // the first of the seeds that are tried, for what breaks in few of them; default 1
	within uint64        // seeds of which one must break it
	size   sim.Size      // of them; empty: short
}

// isRare reports whether it takes many seeds, or long ones, to see the mistake.
func (c *canary) isRare() bool { return c.size != "" || c.from > 1 || c.within > 100 }

const (
	commitFile   = "agent/catalog/commit.go"
	pieceFile    = "agent/catalog/piece.go"
	dataflowFile = "agent/node/dataflow.go"
	orphansFile  = "agent/gateway/sweep/orphans.go"
	ownerFile    = "agent/node/owner.go"
	deleteFile   = "agent/node/delete.go"
	agentsFile   = "agent/gateway/member/agents.go"
	contentsFile = "agent/node/incarnation.go"
	vouchFile    = "agent/gateway/repair/vouch.go"
	obeysFile    = "agent/node/allegiance.go"
	decodeFile   = "agent/gateway/object/decode.go"
	readFile     = "agent/gateway/object/read.go"
	linkFile     = "agent/sim/link.go"
	copyFile     = "agent/node/copy.go"
	executeFile  = "agent/gateway/group/execution.go"
)

var canaries = []canary{
	{
		name: "a commit does not compare the group with what was read",
		edits: []edit{
			{commitFile, "} else if !bytes.Equal(raw, was.raw) {", "} else if !bytes.Equal(raw, raw) {"},
			{commitFile, "t.checks = append(t.checks, kv.Check{Key: key, Value: was.raw})", "t.checks = append(t.checks, kv.Check{Key: key, Value: t.values[key]})"},
		},
		breaks: []sim.Promise{sim.Linearizable, sim.NoLiveDelete, sim.NoStaleEpoch},
		within: 600,
	},
	{
		name: "the sweeper reads the groups before it lists the store",
		edits: []edit{
			{orphansFile, "		var page wire.ListReply\n", `		early := map[block.Address]bool{}
		for view, err := range w.catalog.AllGroups(ctx, block.GroupID{}) {
			if err != nil {
				return err
			}
			for slot, items := range view.Slots {
				for _, item := range items {
					early[view.Address(slot, item)] = true
				}
			}
		}
		var page wire.ListReply
`},
			{orphansFile, "		if err := visit(page.Addresses", `		unnamed = nil
		for _, address := range page.Addresses {
			if !early[address] {
				unnamed = append(unnamed, address)
			}
		}
		if err := visit(page.Addresses`},
			{orphansFile, "			unnamed, _, err := w.catalog.Orphans(ctx, page)\n			return unnamed, err", "			return page, nil"},
		},
		breaks: []sim.Promise{sim.Whole, sim.NoLiveDelete},
		within: 200,
	},
	{
		name: "a commit does not compare incarnations",
		edits: []edit{
			{commitFile, "if now := t.values[schema.IncarnationKey(item.Node)]; now == nil || string(now) != string(item.Incarnation) {", "if false {"},
			{commitFile, "t.checks = append(t.checks, kv.Check{Key: schema.IncarnationKey(node), Value: []byte(t.whole[node])})", "_ = node"},
		},
		breaks: []sim.Promise{sim.Contents},
		within: 1000,
	},
	{
		name: "a commit does not consume its announcement",
		edits: []edit{
			{commitFile, "t.writes = append(t.writes, t.attempt.ledger.end(&t.intent, IntentCommitted)...)", ""},
		},
		breaks: []sim.Promise{sim.NoLiveDelete},
		within: 100,
	},
	{
		name: "a commit does not look whether its attempt was settled",
		edits: []edit{
			{commitFile, "t.checks = append(t.checks, kv.Check{Key: key, Value: t.values[key]})\n\treturn err", "return err"},
		},
		breaks: []sim.Promise{sim.Linearizable, sim.NoLiveDelete, sim.Whole},
		within: 1000,
	},
	{
		name:   "an update does not raise the revision",
		edits:  []edit{{commitFile, "\tobject.Revision, object.Checksum = t.attempt.stamp, 0\n", "\tobject.Checksum = 0\n"}},
		breaks: []sim.Promise{sim.Linearizable, sim.Order},
		within: 300,
	},
	{
		name: "a put that was announced ahead does not look at what it writes over",
		edits: []edit{{
			commitFile, "return max(was.Newest(), uint64(floor)) >= t.attempt.stamp.Sequence, err", "return max(was.Newest(), uint64(floor)) == 0, err",
		}},
		breaks: []sim.Promise{sim.Order},
		within: 300,
	},
	{
		// Of those that come before a block is complete the fingerprints show that it is wrong; what comes after changes the
		// block while it is written.
		name: "a message between agents counts as often as it comes",
		edits: []edit{
			{dataflowFile, "for fresh < end && !came.have[fresh] {", "for fresh < end {"},
			{dataflowFile, "if r.delivered != nil && r.delivered[input] {", "if false {"},
		},
		breaks: []sim.Promise{sim.Parity},
		from:   600,
		within: 1000,
	},
	{
		name:   "an agent serves the store of another node",
		edits:  []edit{{ownerFile, "owner == i.id {\n\t\treturn err", "true {\n\t\treturn err"}},
		breaks: []sim.Promise{sim.Whole, sim.NoLeak},
		within: 300,
	},
	{
		name: "two nodes with one store sweep each other",
		edits: []edit{
			{ownerFile, "owner == i.id {\n\t\treturn err", "true {\n\t\treturn err"},
			{agentsFile, "if twin := a.twin(target, hello.Incarnation); twin != nil {", "if twin := target; false {"},
			{deleteFile, "return header.Node != b.id, nil", "return header.Node == \"\", nil"},
		},
		breaks: []sim.Promise{sim.NoLiveDelete, sim.Whole},
		within: 300,
	},
	{
		name: "a commit buries the blocks that it keeps",
		edits: []edit{
			{commitFile, "if _, kept := after[address]; !kept {\n\t\t\tdead", "if _, kept := after[address]; !kept || true {\n\t\t\tdead"},
		},
		breaks: []sim.Promise{sim.NoLiveDelete, sim.Whole},
		within: 100,
	},
	{
		name: "a move does not compare the object with what was read",
		edits: []edit{
			{
				commitFile, "} else if !as {\n\t\t\tchanged = append",
				"} else if !as && t.values[schema.ObjectKey(was.Object.Key)] == nil {\n\t\t\tchanged = append",
			},
			{
				commitFile, "was.object, &was.Object, t.hold(object.Key, was.Object.Extents), &object)\n\t}\n\tif !change.LeaveOut",
				"t.values[schema.ObjectKey(object.Key)], &was.Object, was.Object.Extents, &object)\n\t}\n\tif !change.LeaveOut",
			},
		},
		breaks: []sim.Promise{sim.Linearizable, sim.Agreement, sim.Readable},
		within: 1000,
	},
	{
		name:   "a node leaves zeros where it cannot read what it is to copy",
		edits:  []edit{{copyFile, "		return err\n	}\n	h, source", "		return nil\n	}\n	h, source"}},
		breaks: []sim.Promise{sim.Contents, sim.Linearizable, sim.NoMixture},
		from:   3700,
		within: 1000,
	},
	{
		name:   "a group is freed though objects have extents in it",
		edits:  []edit{{"agent/catalog/free.go", "if view.Live != 0 {", "if false {"}},
		breaks: []sim.Promise{sim.Agreement, sim.Readable, sim.Linearizable},
		within: 2000,
	},
	{
		name: "a read goes on under the next version",
		edits: []edit{
			{readFile, "err == nil && fresh.Object.Revision != seen.Object.Revision {", "false {"},
		},
		breaks: []sim.Promise{sim.NoMixture, sim.Linearizable},
		within: 3000,
	},
	{
		name:   "the catalog is not told that a store has lost its contents",
		edits:  []edit{{"agent/gateway/member/agents.go", "if was == hello.Incarnation {", "if was != \"\" {"}},
		breaks: []sim.Promise{sim.Whole, sim.Liveness, sim.NoLoss, sim.NoFalseWhole},
		within: 300,
	},
	{
		name:   "nobody asks whether the server of a store was started again",
		edits:  []edit{{contentsFile, `found == "" || found.Run() != run || i.known`, `found == "" || i.known`}},
		breaks: []sim.Promise{sim.NoFalseWhole},
		within: 300,
	},
	{
		name:   "nobody compares the high-water marks of stores",
		edits:  []edit{{contentsFile, "i.known.Outdates(found) || i.obeys.isBehind(found)", "i.known.Outdates(found)"}},
		breaks: []sim.Promise{sim.NoFalseWhole},
		size:   sim.Long,
		within: 300,
	},
	{
		name: "blocks of a store in doubt are vouched for unseen",
		edits: []edit{{
			vouchFile,
			"if receipt == nil || receipt.Checksum != item.Checksum || receipt.Fingerprint != item.Fingerprint {\n\t\t\treturn nil, false",
			"if receipt == nil {\n\t\t\treceipt = &block.Receipt{Incarnation: incarnations[item.Node]}",
		}},
		breaks: []sim.Promise{sim.NoFalseWhole},
		within: 300,
	},
	{
		name: "a marker that went back is registered again",
		edits: []edit{
			{contentsFile, "found.Run() != run || i.known.Outdates(found) || i.obeys.isBehind(found)", "found.Run() != run"},
			{"agent/catalog/cluster/members.go", "if was.Outdates(now) {", "if false {"},
		},
		breaks: []sim.Promise{sim.NoFalseWhole},
		size:   sim.Long,
		within: 300,
	},
	{
		name: "a piece is swept while its put goes on",
		edits: []edit{
			{pieceFile, "if err != nil || intent[0] != nil {", "if err != nil {"},
			{pieceFile, "checks = append(checks, kv.Check{Key: schema.IntentKey(piece.Attempt)})", "_ = intent"},
		},
		breaks: []sim.Promise{sim.Agreement},
		from:   570,
		within: 1000,
	},
	{
		name:   "the last commit of a put leaves its pieces to be swept",
		edits:  []edit{{pieceFile, "t.writes = append(t.writes, kv.Write{Key: key, Kind: kv.Remove})", ""}},
		breaks: []sim.Promise{sim.Agreement, sim.Readable, sim.Linearizable, sim.NoLiveDelete},
		within: 100,
	},
	{
		name: "what is dead is not buried, and no store is searched",
		edits: []edit{
			{"agent/catalog/grave.go", "if len(addresses) == 0 {", "if true {"},
			{orphansFile, `for after, more := "", true; more; {`, `for after, more := "", false; more; {`},
		},
		breaks: []sim.Promise{sim.NoLeak},
		within: 20,
	},
	{
		name:   "a read takes the groups of an object as of another moment",
		edits:  []edit{{"agent/catalog/snapshot.go", "if !bytes.Equal(raw, values[0]) {", "if false && !bytes.Equal(raw, values[0]) {"}},
		breaks: []sim.Promise{sim.Agreement},
		size:   sim.Long,
		within: 800,
	},
	{
		name: "blocks of several records of a group are decoded together",
		edits: []edit{{decodeFile, "data, err := r.readShared(ctx, group, candidate, f, call)", `fresh := group
			if view, err := g.catalog.Group(ctx, group.ID); err == nil && view.Scheme == group.Scheme {
				fresh = &view.Group
			}
			data, err := r.readShared(ctx, fresh, candidate, f, call)`}},
		breaks: []sim.Promise{sim.NoMixture},
		size:   sim.Long,
		within: 1000,
	},
	{
		name: "parities are given up though blocks are missing",
		edits: []edit{
			{commitFile, "		} else {\n			t.require(&group, nil)\n		}", `		} else if t.attempt.kind != KindTransition {
			t.require(&group, nil)
		}`},
			{
				executeFile, "			if receipt == nil {\n				g.Reported.Add(r.Group.ID)\n",
				`			if receipt == nil && r.Plan.Planner == stripe.PlannerRestripe {
				return nil
			}
			if receipt == nil {
				g.Reported.Add(r.Group.ID)
`,
			},
		},
		breaks: []sim.Promise{sim.Whole, sim.NoLoss, sim.Contents},
		size:   sim.Long,
		from:   700,
		within: 500,
	},
	{
		name: "a leader of the catalog that has lost its place goes on answering reads",
		edits: []edit{
			{linkFile, "	election chan struct{}", "	former   *catalogmem.Engine\n	election chan struct{}"},
			{linkFile, "		l.election = make(chan struct{})\n", "		l.election, l.former = make(chan struct{}), l.checker.ledger.engine.Clone()\n"},
			{linkFile, "	values, err := l.records().engine.Read(ctx, keys...)\n", `	from := l.records().engine
			l.mutex.Lock()
			if l.former != nil && l.astray == nil && l.election == nil && l.dice.chance(0.1) {
				from = l.former
			}
			l.mutex.Unlock()
			values, err := from.Read(ctx, keys...)
`},
		},
		breaks: []sim.Promise{sim.Linearizable, sim.NoFalseAlarm},
		within: 100,
	},
	{
		name: "a transition does not say which ladder it took a group to",
		edits: []edit{{
			"agent/gateway/transition/transition.go",
			"		change.Layout = &catalog.GroupLayout{Ladder: r.Group.Ladder, Mode: r.Group.Mode, Version: r.Group.LayoutVersion}\n", "",
		}},
		breaks: []sim.Promise{sim.Whole},
		from:   170,
		within: 200,
	},
	{
		name:   "agents delete at once for a gateway that nobody named",
		edits:  []edit{obeyed},
		breaks: []sim.Promise{sim.NoLiveDelete},
		within: 300,
	},
	{
		name: "agents obey every catalog",
		edits: []edit{
			obeyed,
			{obeysFile, "if len(foreign) > 0 || len(lacks) > 0 && !copied || slices.Contains(shown.Read.Disowned, shown.Start) {", "if false {"},
			{obeysFile, "	if len(lacks) > 0 || len(foreign) > 0 {\n		return fmt", "	if (len(lacks) > 0 || len(foreign) > 0) && false {\n		return fmt"},
		},
		breaks: []sim.Promise{sim.NoLiveDelete},
		within: 300,
	},
}

// obeyed is the condition by which a start may have blocks deleted at once, made true.
var obeyed = edit{obeysFile, "firmly := isKnown && was.Standing != newcomer || !obeys", "firmly := isKnown || was.Standing == newcomer || !obeys || true"}

// A simulation that cannot fail proves nothing: every canary must be found within its number of seeds.
func TestCanariesAreFound(t *testing.T) {
	all := os.Getenv("RESTRIPE_CANARIES") == "all"
	for _, c := range canaries {
		if !all && c.isRare() {
			t.Logf("left to make sim-canaries: %s", c.name)
			continue
		}
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			root, err := filepath.Abs("../../..")
			if err != nil {
				t.Fatal(err)
			}
			replaced, err := apply(root, c.edits, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			m := made(t, replaced)
			ctx, enough := context.WithCancel(t.Context())
			defer enough()
			found := false
			seeds := options{size: cmp.Or(c.size, sim.Short), from: cmp.Or(c.from, 1), count: c.within, workers: runtime.GOMAXPROCS(0)}
			tried := m.try(ctx, seeds, watch{failed: func(f failure) {
				if f.err == nil && slices.Contains(c.breaks, f.Promise) {
					found = true
					enough()
				}
				t.Logf("found: %.300s", f)
			}})
			if !found {
				t.Errorf("%q is not seen to be broken by %d seeds, of which %d failed", c.breaks, tried.seeds, len(tried.failures))
			}
		})
	}
}

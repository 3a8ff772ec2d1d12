package rebuild

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/pki"
)

// Options of a rebuild. Nodes is required.
type Options struct {
	Nodes    []catalog.Node // every member, as the node list of the gateway has them
	Missing  bool           // go on without nodes that do not answer
	Modified time.Time      // what objects are said to have been modified at, and groups to be settled at
	Progress func(what string, done, total int)

	Certificates *pki.Source // who reads them, to the agents; nil: nobody says who they are
}

// groupWorkers is how many groups are read side by side.
const groupWorkers = 16

// Run reads the stores of all nodes and returns what a catalog of theirs would hold. It changes nothing but that agents
// which were not attached yet serve. No gateway may run meanwhile.
func Run(ctx context.Context, options Options) (*catalog.Contents, *Report, error) {
	if options.Progress == nil {
		options.Progress = func(string, int, int) {}
	}
	r := &reader{options: options, report: &Report{Problems: []Problem{}, Unknowable: unknowable}}
	defer r.close()
	if err := r.greet(ctx); err != nil {
		return nil, nil, err
	}
	blocks, err := r.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	groups, err := r.assemble(ctx, blocks)
	if err != nil {
		return nil, nil, err
	}
	contents := r.contents(groups, blocks)
	return contents, r.report, nil
}

// assemble puts all groups together, and once more those with updates that turn out not to have been committed.
func (r *reader) assemble(ctx context.Context, blocks map[block.GroupID][]block.Address) ([]Group, error) {
	ids := slices.SortedFunc(maps.Keys(blocks), func(a, b block.GroupID) int { return cmp.Compare(a.String(), b.String()) })
	groups := make([]Group, len(ids))
	around := r.surroundings()
	done := 0
	results := make(chan struct{}, groupWorkers)
	workers, workCtx := errgroup.WithContext(ctx)
	workers.SetLimit(groupWorkers)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for range results {
			done++
			r.options.Progress("groups", done, len(ids))
		}
	}()
	for i, id := range ids {
		workers.Go(func() (err error) {
			groups[i], err = r.group(workCtx, id, blocks[id], around)
			results <- struct{}{}
			return err
		})
	}
	err := workers.Wait()
	close(results)
	<-finished
	if err != nil {
		return nil, err
	}
	excluded := map[block.Stamp]bool{}
	for torn := Torn(groups); len(torn) > 0; torn = Torn(groups) {
		around := r.surroundings()
		around.Excluded = excluded
		maps.Copy(excluded, torn)
		for i, id := range ids {
			if !slices.ContainsFunc(groups[i].Attempts, func(stamp block.Stamp) bool { return torn[stamp] }) {
				continue
			}
			if groups[i], err = r.group(ctx, id, blocks[id], around); err != nil {
				return nil, err
			}
			groups[i].Problems = append(groups[i].Problems, Problem{Kind: ProblemAborted, Group: &id,
				Text: "the blocks of an update of several groups are left out: other groups do not have theirs, so it was not committed"})
		}
	}
	return withdrawn(groups, excluded, func(i int, excluded map[block.Stamp]bool) (Group, error) {
		around := r.surroundings()
		around.Excluded = excluded
		return r.group(ctx, ids[i], blocks[ids[i]], around)
	})
}

// group reads the headers of a group's blocks and puts it together.
func (r *reader) group(ctx context.Context, id block.GroupID, addresses []block.Address, around *Surroundings) (Group, error) {
	found, problems, err := r.headers(ctx, id, addresses)
	if err != nil {
		return Group{}, err
	}
	g := Assemble(id, found, around)
	if g.Complete {
		if err := g.Record.Check(); err != nil {
			g = Group{Problems: append(g.Problems, Problem{Kind: ProblemIncomplete, Group: &id, Text: fmt.Sprintf("no record can be made of it: %v", err)})}
		}
	}
	g.Record.ID = id
	g.Problems = append(problems, g.Problems...)
	return g, nil
}

// surroundings name the members, those that did not answer first: a block that is missing is likely theirs.
func (r *reader) surroundings() *Surroundings {
	around := &Surroundings{Printer: kernel.NewFingerprinter(r.cluster.FingerprintKey), Settled: r.options.Modified.UnixMilli()}
	for _, answers := range []bool{false, true} {
		for _, node := range r.nodes {
			if (node.problem == nil) == answers {
				around.Members = append(around.Members, node.node.ID)
			}
		}
	}
	return around
}

// contents are the records of all groups that hold objects, and the report of all of it.
func (r *reader) contents(groups []Group, blocks map[block.GroupID][]block.Address) *catalog.Contents {
	c := &catalog.Contents{Cluster: r.cluster, Incarnations: map[block.NodeID]block.Incarnation{}}
	for _, node := range r.nodes {
		c.Starts = append(c.Starts, node.hello.Starts...)
	}
	report := r.report
	var whole []Group
	for i := range groups {
		if groups[i].Complete {
			whole = append(whole, groups[i])
		}
	}
	lying, doubts := resolve(whole)
	report.Problems = append(report.Problems, doubts...)
	c.Objects, doubts = Objects(whole, r.options.Modified.UnixMilli())
	used := map[block.GroupID]bool{}
	highest := uint64(0)
	for i := range c.Objects {
		object := &c.Objects[i]
		report.Bytes += object.Size
		highest = max(highest, object.Revision.Sequence)
		for _, extent := range object.Extents {
			used[extent.Group] = true
		}
	}
	for i := range lying {
		if used[lying[i].ID] {
			c.Groups = append(c.Groups, lying[i])
			for _, id := range lying[i].LiesIn() {
				used[id] = true
			}
		}
	}
	for i := range groups {
		for _, doubt := range groups[i].Problems {
			ofBytes := doubt.Kind == ProblemMissing || doubt.Kind == ProblemWrong || doubt.Kind == ProblemUndecided
			if used[groups[i].Record.ID] || !ofBytes { // what is wrong with bytes that no object has does not matter
				report.Problems = append(report.Problems, doubt)
			}
		}
	}
	for _, doubt := range doubts {
		// Overwritten objects stay in packed groups as long as others live there; a group of their own is deleted soon.
		if doubt.Kind != ProblemVersions || !used[*doubt.Group] {
			report.Problems = append(report.Problems, doubt)
		}
	}
	named := 0
	for i := range whole {
		record := &whole[i].Record
		if !used[record.ID] {
			continue
		}
		c.Groups = append(c.Groups, *record)
		named += countBlocks(record)
		if !slices.Contains(report.Classes, record.Class) {
			report.Classes = append(report.Classes, record.Class)
		}
	}
	there := make(map[block.GroupID]*catalog.Group, len(c.Groups))
	for i := range c.Groups {
		there[c.Groups[i].ID] = &c.Groups[i]
	}
	for i := range c.Objects {
		c.Objects[i].Locate(there)
	}
	for id, addresses := range blocks {
		highest = max(highest, id.Stamp.Sequence)
		report.Blocks += len(addresses)
		for _, address := range addresses {
			highest = max(highest, address.Stamp.Sequence)
		}
	}
	slices.Sort(report.Classes)
	c.Next = highest + catalog.Ahead // attempts that left no block had stamps too
	for _, node := range r.nodes {
		record := node.node
		if record.State == "" {
			record.State = catalog.NodeUp
		}
		c.Nodes = append(c.Nodes, record)
		if node.hello.Incarnation != "" {
			c.Incarnations[record.ID] = node.hello.Incarnation
		}
		report.Nodes = append(report.Nodes, node.report())
	}
	report.Cluster, report.Next = c.Cluster.ID, c.Next
	report.Groups, report.Objects, report.Unnamed = len(c.Groups), len(c.Objects), report.Blocks-named
	return c
}

// countBlocks counts the blocks in stores that a record names.
func countBlocks(record *catalog.Group) int {
	named := map[block.Address]bool{}
	for slot, items := range record.Slots {
		for _, item := range items {
			if item.Incarnation != lostIncarnation {
				named[record.Address(slot, item)] = true
			}
		}
	}
	return len(named)
}

package member

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/job"
)

// Options configure a Membership.
type Options struct {
	ID    string         // of the gateway
	Nodes []catalog.Node // entered into the catalog at start; nodes already there stay

	Release string // of the program

	Background *job.Background             // of what goes on when those who asked for it have left
	Reported   func(id block.GroupID) bool // of groups that miss what no record shows
}

// Membership is who belongs to the cluster: what people declare of nodes, and what lies on them.
type Membership struct {
	agents  *Agents
	catalog *catalog.Catalog
	log     *slog.Logger
	options Options
	doubts  map[block.NodeID]string // addresses of the node list that differ from the records', as long as nobody knows which holds

	survey    *job.Recent[*Survey]
	removing  sync.Mutex // of what follows
	removals  map[block.NodeID]*removal
	lookAgain atomic.Bool // the next look at where blocks lie takes the members for changed
}

// Open enters the nodes of the options into the catalog and returns the members, whom agents knows from then on.
func Open(ctx context.Context, records *catalog.Catalog, agents *Agents, log *slog.Logger, options Options) (*Membership, error) {
	m := &Membership{agents: agents, catalog: records, log: log, options: options, removals: map[block.NodeID]*removal{}}
	m.survey = job.NewRecent(options.Background, m.walk)
	members, err := m.enterNodes(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range members {
		agents.Enter(node)
	}
	m.doubts = m.elsewhere(members)
	return m, nil
}

// ForgetCounts has the next one who asks how much lies on nodes count anew.
func (m *Membership) ForgetCounts() { m.survey.Forget() }

// TakeLookAgain reports whether where blocks lie is to be looked at again although the members are as they were, and takes
// that back.
func (m *Membership) TakeLookAgain() bool { return m.lookAgain.Swap(false) }

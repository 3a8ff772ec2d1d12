package repair

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/member"
)

// Options configure Repairs.
type Options struct {
	ID         string        // of the gateway
	SweepEvery time.Duration // how often it is looked for something to do
	Clock      func() time.Time
	Metrics    prometheus.Registerer
}

// Repairs is the repair of what was lost.
type Repairs struct {
	catalog    *catalog.Catalog
	agents     *member.Agents
	members    *member.Membership
	groups     *group.Groups
	log        *slog.Logger
	options    Options
	supervisor *supervisor
}

// New returns the repair of the groups of a catalog. It does nothing by itself before its loops run.
func New(records *catalog.Catalog, agents *member.Agents, members *member.Membership, groups *group.Groups, log *slog.Logger, options Options) *Repairs {
	rs := &Repairs{catalog: records, agents: agents, members: members, groups: groups, log: log, options: options}
	rs.supervisor = newSupervisor(rs)
	return rs
}

// ControlLoop goes by what is declared of repair, of which the catalog tells, for as long as ctx lives.
func (rs *Repairs) ControlLoop(ctx context.Context) { rs.supervisor.controlLoop(ctx) }

// ReportedLoop rebuilds what reads met, soon and whatever else is being rebuilt, for as long as ctx lives.
func (rs *Repairs) ReportedLoop(ctx context.Context) { rs.supervisor.reportedLoop(ctx) }

// RecordsLoop rebuilds what was lost with the contents of a store or with a node, for as long as ctx lives.
func (rs *Repairs) RecordsLoop(ctx context.Context) { rs.supervisor.recordsLoop(ctx) }

// LookAtRecords has the records of all groups looked at for losses at once.
func (rs *Repairs) LookAtRecords() {
	rs.agents.Lost.Store(true)
	rs.supervisor.records.Notify()
}

// HasFailed reports whether the repair of a group has failed while the nodes were as the roster says.
func (rs *Repairs) HasFailed(id block.GroupID, roster uint64) bool {
	return rs.supervisor.failures.has(id, roster)
}

// Paused reads what is declared and reports whether repair is paused; where it is not, pausing is closed once it is.
func (rs *Repairs) Paused(ctx context.Context) (paused bool, pausing <-chan struct{}, err error) {
	if err := rs.supervisor.refresh(ctx); err != nil {
		return false, nil, err
	}
	paused, pausing = rs.supervisor.paused()
	return paused, pausing, nil
}

// Grant returns what a repair waits for that nobody waits for: that it fits the limits of repair, or that halt is closed.
func (rs *Repairs) Grant(halt <-chan struct{}) *Grant { return rs.supervisor.pay(halt) }

// IsWaiting reports whether the repair of a group waits for the limits of repair.
func (rs *Repairs) IsWaiting() bool { return rs.supervisor.pacer.IsWaiting() }

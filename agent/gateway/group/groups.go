package group

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/kernel"
)

// Options configure Groups.
type Options struct {
	MemoryBytes int64            // bound on buffers; see Memory
	AttemptTime time.Duration    // deadline announced for an attempt
	Clock       func() time.Time // by which attempts expire
}

// Groups makes attempts on groups: each changes one group, or makes a new one, in one transaction.
type Groups struct {
	Reported Reported // those in which something was found missing or wrong
	Memory   Memory
	Unproven atomic.Int64 // times that what was staged did not hold the equations of its code, and was not committed

	catalog *catalog.Catalog
	agents  *member.Agents
	log     *slog.Logger
	options Options
	codes   CodeCache
	Pool    *kernel.Pool
}

// New returns the groups of a catalog whose blocks the agents hold.
func New(records *catalog.Catalog, agents *member.Agents, log *slog.Logger, options Options) *Groups {
	bytes := options.MemoryBytes
	return &Groups{
		catalog: records, agents: agents, log: log, options: options, Pool: &kernel.Pool{},
		Reported: Reported{Wake: job.NewWake()},
		Memory: Memory{
			Groups: budget.New(bytes * 3 / 8), Small: budget.New(bytes / 8), Batches: budget.New(bytes / 8),
			Reads: budget.New(bytes / 8), Decodes: budget.New(bytes / 8),
			Updates: budget.New(bytes * 3 / 16), Rewrites: budget.New(bytes / 16), Copies: budget.New(bytes / 16),
		},
	}
}

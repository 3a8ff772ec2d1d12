package object

import (
	"cmp"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/cache"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/gateway/direct"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/hedge"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/gateway/repair"
	"github.com/restripe/restripe/agent/gateway/temperature"
)

// Parts are what Objects work with. All are required.
type Parts struct {
	Catalog    *catalog.Catalog
	Agents     *member.Agents
	Groups     *group.Groups
	Classes    *class.Registry
	Repairs    *repair.Repairs
	Heat       *temperature.Thermometer
	Direct     *direct.Stores // that the gateway reaches by itself
	Cache      *cache.Cache
	Background *job.Background
	Logger     *slog.Logger
	ReadGroups int    // of how many groups a read has the records at a time
	Sparse     func() // is called when small objects were written that do not fill a row of their group

	// Hot is called when a small object was read whose key is a hot one, and which lies under a colder scheme. It may not take long.
	Hot func(class, key string)

	PieceGroups int // how many groups a put commits at a time; 0: as many as an update of the catalog takes

	ReadPatience time.Duration // how long reads wait for the rebuilding of what they miss; 0: mendPatience
}

// Objects are the objects of a catalog.
type Objects struct {
	Counters    Counters
	Packing     *Packing
	ReadRepairs *repair.ReadRepairs

	catalog    *catalog.Catalog
	agents     *member.Agents
	groups     *group.Groups
	classes    *class.Registry
	repairs    *repair.Repairs
	direct     *direct.Stores
	cache      *cache.Cache
	heat       *temperature.Thermometer
	background *job.Background
	log        *slog.Logger
	readGroups int
	sparse     func()
	hot        func(class, key string)

	pieceGroups int

	batches  *batches
	hedge    hedge.Hedges
	stuck    atomic.Int64       // bytes that are being written to clients as they lie, which cannot be dropped
	mending  singleflight.Group // of reads that wait until a group is rebuilt, and decode nothing, by its id
	mendings mendings           // of reads that decode or wait for a moment
}

// Counters count what reads met.
type Counters struct {
	Degraded          atomic.Int64 // fragments decoded because their cell could not be read
	Hedges, HedgesWon atomic.Int64 // reads asked of more nodes than needed because one was slow, and those that so came first
	Pieces, InPieces  atomic.Int64 // pieces that were committed, and puts under way that have committed some
}

// New returns the objects of a catalog.
func New(parts Parts) *Objects {
	o := &Objects{
		Packing: newPacking(), ReadRepairs: repair.NewReadRepairs(),
		catalog: parts.Catalog, agents: parts.Agents, groups: parts.Groups, classes: parts.Classes, repairs: parts.Repairs,
		heat: parts.Heat, direct: parts.Direct, cache: parts.Cache, background: parts.Background, log: parts.Logger, readGroups: parts.ReadGroups,
		pieceGroups: parts.PieceGroups,
	}
	o.sparse, o.hot = parts.Sparse, parts.Hot
	o.mendings = mendings{counts: o.ReadRepairs, patience: cmp.Or(parts.ReadPatience, mendPatience)}
	o.batches = newBatches(o)
	return o
}

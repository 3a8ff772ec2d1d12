package reliability

import (
	"fmt"
	"math"
)

// Defaults of an Environment; docs/reliability.md has the reasons.
const (
	DefaultFailurePercent   = 4
	DefaultRepairBandwidth  = 100 << 20 // bytes per second
	DefaultNodeBytes        = 4 << 40
	DefaultDetectionSeconds = 600
)

// Environment is what the nodes are like, as far as durability depends on it.
type Environment struct {
	// FailurePercent is how many of a hundred nodes fail for good in a year.
	FailurePercent float64 `json:"annualFailurePercent"`
	// RepairBandwidth is the bytes per second that what rebuilds a lost node receives. A lost byte takes k bytes.
	RepairBandwidth float64 `json:"repairBytesPerSecond"`
	// NodeBytes is the bytes stored on a node.
	NodeBytes float64 `json:"nodeBytes"`
	// DetectionSeconds pass before the rebuild of a lost node begins.
	DetectionSeconds float64 `json:"detectionSeconds"`
}

// DefaultEnvironment returns the documented defaults.
func DefaultEnvironment() Environment {
	return Environment{
		FailurePercent: DefaultFailurePercent, RepairBandwidth: DefaultRepairBandwidth,
		NodeBytes: DefaultNodeBytes, DetectionSeconds: DefaultDetectionSeconds,
	}
}

// Limits of an Environment: outside them the models say nothing, or numbers overflow.
const (
	leastFailurePercent = 1e-6
	mostFailurePercent  = 1e4
	leastBandwidth      = 1
	mostNodeBytes       = 1 << 60
	mostDetection       = secondsPerYear
)

// Validate reports what is wrong with e, wrapping ErrModel.
func (e Environment) Validate() error {
	within := func(value, least, most float64) bool { return value >= least && value <= most } // false for NaN
	switch {
	case !within(e.FailurePercent, leastFailurePercent, mostFailurePercent):
		return fmt.Errorf("%w: %v of a hundred nodes failing a year; give a number from %v to %v", ErrModel, e.FailurePercent, leastFailurePercent, mostFailurePercent)
	case !within(e.RepairBandwidth, leastBandwidth, math.MaxInt64):
		return fmt.Errorf("%w: repair at %v bytes per second; give at least %v", ErrModel, e.RepairBandwidth, leastBandwidth)
	case !within(e.NodeBytes, 0, mostNodeBytes):
		return fmt.Errorf("%w: %v bytes on a node; give a number from 0 to %v", ErrModel, e.NodeBytes, float64(mostNodeBytes))
	case !within(e.DetectionSeconds, 0, mostDetection):
		return fmt.Errorf("%w: %v seconds before repair begins; give at most a year", ErrModel, e.DetectionSeconds)
	case e.NodeBytes == 0 && e.DetectionSeconds == 0:
		return fmt.Errorf("%w: a repair that takes no time; give the bytes on a node, or the seconds before repair begins", ErrModel)
	}
	return nil
}

const secondsPerYear = 365.25 * 24 * 3600

// RepairSeconds returns how long the rebuild of a lost node takes under a code with k data cells a stripe, the time
// until it is noticed included.
func (e Environment) RepairSeconds(k int) float64 {
	return e.DetectionSeconds + float64(k)*e.NodeBytes/e.RepairBandwidth
}

// Rates returns the rates of nodes that all carry the same, as groups are rotated over the nodes.
func (e Environment) Rates(k int) Rates {
	repair := secondsPerYear / e.RepairSeconds(k)
	return Rates{Failure: e.FailurePercent / 100, DataRepair: repair, ParityRepair: repair}
}

// Rates are how often things happen to one node, per year.
type Rates struct {
	Failure      float64
	DataRepair   float64 // of a lost node that holds data
	ParityRepair float64 // of a lost node that holds parity
}

// StretchedRates returns the rates of Appendix A.2: where k cells a stripe are stretched over columns nodes, a data node
// holds k/columns of what a parity node does and is repaired columns/k times as fast. repair is the rate of a parity
// node, which is also that of every node of rs(k,m).
func StretchedRates(k, columns int, failure, repair float64) Rates {
	return Rates{Failure: failure, DataRepair: float64(columns) / float64(k) * repair, ParityRepair: repair}
}

func (r Rates) validate() error {
	for _, rate := range []float64{r.Failure, r.DataRepair, r.ParityRepair} {
		if !(rate > 0) || math.IsInf(rate, 1) {
			return fmt.Errorf("%w: rates %+v; every rate must be positive and finite", ErrModel, r)
		}
	}
	return nil
}

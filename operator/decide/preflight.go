package decide

import (
	"fmt"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// Preflight is what a policy is held against before anything moves.
type Preflight struct {
	Class       *Class
	BackendName string
	Backend     *v1alpha1.StorageBackend // nil: there is none of the name
	PeakBytes   int64                    // most that the planned moves store beyond what is stored now; 0: nothing planned, or unknown
}

// check is one question; nil: passed.
type check func(p *Preflight) *Problem

// The checks in order; the first that fails is the answer. Those of cautions stop nothing and are told all.
var (
	refusals = []check{backendDeclared, backendSeen, enoughNodes, enoughDomains, blocksFit, peakFits}
	cautions = []check{storeKeeps, storeRemembers, domainsSpread, nodeSpare}
)

// Feasible says whether the backend can carry a policy out: the first refusal, and what else a person should know.
func Feasible(p Preflight) (refusal *Problem, warnings []*Problem) {
	for _, ask := range refusals {
		if refusal = ask(&p); refusal != nil {
			return refusal, nil
		}
	}
	for _, ask := range cautions {
		if warning := ask(&p); warning != nil {
			warnings = append(warnings, warning)
		}
	}
	return nil, warnings
}

func backendDeclared(p *Preflight) *Problem {
	switch {
	case p.Backend == nil:
		return problem(ReasonBackendMissing, "there is no StorageBackend %s; declare it, or correct backendRef", p.BackendName)
	case p.Backend.DeletionTimestamp != nil:
		return problem(ReasonBackendMissing, "StorageBackend %s is being deleted; move the policy to another backend, or delete it too", p.BackendName)
	}
	return nil
}

func backendSeen(p *Preflight) *Problem {
	if p.Backend.Status.LastSeen == nil {
		return problem(ReasonBackendUnknown, "no gateway of backend %s has answered yet; see its conditions", p.BackendName)
	}
	return nil
}

// States of a node.
const (
	nodeUp       = "up"
	nodeSuspect  = "suspect"
	nodeOut      = "out"
	nodeDraining = "draining"
)

// stays reports whether a node will hold blocks in the long run; one that is down may come back, one that is out was
// given up.
func stays(node v1alpha1.NodeStatus) bool {
	return node.State != nodeDraining && node.State != nodeOut && node.State != nodeMissing
}

func enoughNodes(p *Preflight) *Problem {
	nodes := 0
	for _, node := range p.Backend.Status.Nodes {
		if stays(node) {
			nodes++
		}
	}
	if need := p.Class.nodesNeeded(); nodes < need {
		return problem(ReasonTooFewNodes, "ladder %s lays each group over %d nodes (%d data columns and %d parity rows), backend %s has %d; add %s, or use a narrower ladder",
			p.Class.Ladder, need, p.Class.Ladder.Width(), p.Class.Ladder.MaxParity(), p.BackendName, nodes, words.Count(int64(need-nodes), "node"))
	}
	return nil
}

// domains counts the nodes that stay by failure domain; a node without one is its own.
func domains(nodes []v1alpha1.NodeStatus) map[string]int {
	sizes := map[string]int{}
	for _, node := range nodes {
		if !stays(node) {
			continue
		}
		name := node.FailureDomain
		if name == "" {
			name = "node/" + node.Name
		}
		sizes[name]++
	}
	return sizes
}

// heaviestDomain is how many blocks of a group the fullest failure domain gets when they are spread as evenly as the
// domains' sizes allow.
func heaviestDomain(sizes map[string]int, blocks int) int {
	most := 0
	for level := 1; blocks > 0; level++ {
		room := 0
		for _, size := range sizes {
			if size >= level {
				room++
			}
		}
		if room == 0 {
			break
		}
		most, blocks = level, blocks-min(room, blocks)
	}
	return most
}

// weakest is the fewest losses a step of the ladder survives.
func weakest(class *Class) int {
	fewest := class.Ladder[0].M
	for _, scheme := range class.Ladder {
		fewest = min(fewest, scheme.M)
	}
	return fewest
}

// enoughDomains refuses a ladder of whose groups the loss of one failure domain takes more than the code survives, where
// domains are declared at all and there are at least two.
func enoughDomains(p *Preflight) *Problem {
	sizes := domains(p.Backend.Status.Nodes)
	heaviest, survived := heaviestDomain(sizes, p.Class.nodesNeeded()), weakest(p.Class)
	if heaviest <= max(1, survived) {
		return nil
	}
	return problem(ReasonTooFewDomains, "%d failure domains take up to %d blocks of a group each, and the ladder %s survives the loss of %d; add domains, use more parity or a narrower ladder",
		len(sizes), heaviest, p.Class.Ladder, survived)
}

func blocksFit(p *Preflight) *Problem {
	limit, largest := p.Backend.Status.Capabilities.MaxItemBytes, p.Class.largestBlock()
	if limit <= 0 || largest <= limit {
		return nil
	}
	return problem(ReasonItemTooLarge, "blocks of the ladder %s reach %s with their header and the stores of backend %s take %s; lower packing.groupBytes, or leave out replicas",
		p.Class.Ladder, words.Bytes(largest), p.BackendName, words.Bytes(limit))
}

// spaceReservePercent is how much of a backend no plan may fill.
const spaceReservePercent = 5

func peakFits(p *Preflight) *Problem {
	status := p.Backend.Status
	if p.PeakBytes <= 0 || status.CapacityBytes <= 0 {
		return nil
	}
	free := status.CapacityBytes - status.UsedBytes - status.CapacityBytes/100*spaceReservePercent
	if p.PeakBytes <= free {
		return nil
	}
	return problem(ReasonNoSpace, "the plan needs %s more for a while and backend %s has %s free beside a reserve of %d %%; make room, or move less at once",
		words.Bytes(p.PeakBytes), p.BackendName, words.Bytes(max(0, free)), spaceReservePercent)
}

func storeKeeps(p *Preflight) *Problem {
	if !p.Backend.Status.Capabilities.Evicts {
		return nil
	}
	return problem(ReasonStoreEvicts, "the stores of backend %s may drop blocks by themselves; keep only what can be had elsewhere, as caches do", p.BackendName)
}

func storeRemembers(p *Preflight) *Problem {
	if p.Backend.Status.Capabilities.Durable || p.Backend.Status.Capabilities.Evicts {
		return nil
	}
	return problem(ReasonStoreForgets, "the stores of backend %s lose their blocks when their process ends; more such losses at once than the code survives lose data", p.BackendName)
}

func domainsSpread(p *Preflight) *Problem {
	sizes := domains(p.Backend.Status.Nodes)
	if need := p.Class.nodesNeeded(); len(sizes) < need && heaviestDomain(sizes, need) > 1 {
		return problem(ReasonTooFewDomains, "some of the %d blocks of a group share one of %d failure domains; the loss of a domain takes up to %d blocks", need, len(sizes), heaviestDomain(sizes, need))
	}
	return nil
}

// Impaired is what is wrong now with what a class stores and with storing more, by the groups that miss blocks at the last count
// and the nodes as they are; nil if nothing is.
func Impaired(class *Class, backend *v1alpha1.StorageBackend, notWhole int64) *Problem {
	var missing, refused string
	if notWhole > 0 {
		missing = "blocks are missing of " + words.Count(notWhole, "group") + " of the class"
	}
	takes := 0
	for _, node := range backend.Status.Nodes {
		if node.State == nodeUp {
			takes++
		}
	}
	if need := class.nodesNeeded(); takes < need {
		refused = fmt.Sprintf("new objects are refused: ladder %s lays each group over %d nodes and %d of %d take blocks; bring nodes back, or add some",
			class.Ladder, need, takes, len(backend.Status.Nodes))
	}
	switch {
	case refused != "":
		return problem(ReasonPutsRefused, "%s", sentences(refused, missing))
	case missing != "":
		return problem(ReasonRedundancyMissing, "%s", missing)
	}
	return nil
}

func nodeSpare(p *Preflight) *Problem {
	up := 0
	for _, node := range p.Backend.Status.Nodes {
		if node.State == nodeUp {
			up++
		}
	}
	if up > p.Class.nodesNeeded() {
		return nil
	}
	return problem(ReasonNoSpareNode, "%d nodes take blocks and each group lies on %d: a lost node has no spare to be rebuilt on; add one", up, p.Class.nodesNeeded())
}

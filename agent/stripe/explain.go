package stripe

import (
	"fmt"
	"strings"
)

// Explain says in sentences what a plan does to one group, for users: what crosses the network and why, what is read and
// written, and what is left alone.
func Explain(plan *Plan) string {
	var sentences []string
	switch plan.Planner {
	case plannerUpdate:
		sentences = explainUpdate(plan)
	case plannerWiden:
		sentences = explainWidening(plan)
	case plannerNarrow:
		sentences = explainNarrowing(plan)
	case plannerSplice:
		sentences = explainSplice(plan)
	case plannerRepair, plannerRepairChain, plannerRepairTree, plannerInitiator:
		sentences = explainRepair(plan)
	case plannerRelocate:
		sentences = explainRelocation(plan)
	case PlannerRestripe:
		sentences = explainRestripe(plan)
	default:
		sentences = explainProxy(plan)
	}
	return strings.Join(sentences, " ")
}

func explainRestripe(plan *Plan) []string {
	from, to, cost := plan.From, plan.To, plan.Cost
	dropped := counted(from.M-to.M, "parity row is", "parity rows are") + " deleted."
	switch {
	case from == to:
		return []string{"There is nothing to do: the group is as wanted already."}
	case to.M == 0:
		return []string{"0 blocks cross the network and none is read: the data stays where it is and " + dropped}
	case from.K == to.K && from.M > to.M:
		return []string{"0 blocks cross the network and none is read: the stripes stay as they are and " + dropped}
	}
	var sentences []string
	switch crossing := crossings(cost.BlocksSent); {
	case cost.BlocksSent == 0 && to.M == 1:
		sentences = append(sentences, fmt.Sprintf("%s: the parity node adds the %s it already holds.", crossing, held(plan)))
	case cost.BlocksSent == 0:
		sentences = append(sentences, fmt.Sprintf("%s: each parity node adds the %s it already holds.", crossing, held(plan)))
	case to.M == from.M+1:
		sentences = append(sentences, crossing+": 1 new parity row is needed, and one node gathers each stripe and computes the row.")
	case to.M > from.M:
		sentences = append(sentences, fmt.Sprintf("%s: %d new parity rows are needed, and one node gathers each stripe and computes the rows for all.",
			crossing, to.M-from.M))
	case plan.Objective == LeastReads:
		sentences = append(sentences, crossing+": old parities are kept only where that saves reads; what the parity nodes lack is gathered and sent to them as sums.")
	default:
		sentences = append(sentences, fmt.Sprintf("%s: each parity node keeps what it holds and is sent only the sums of cells that change stripes.", crossing))
	}
	sentences = append(sentences, readsAndWrites(cost))
	if cost.BlocksSent > 0 {
		sentences = append(sentences, busiest(cost))
	}
	if from.K != to.K && from.M > to.M {
		sentences = append(sentences, dropped)
	}
	return append(sentences, "No data block moves.")
}

// held names what a parity node adds up per new stripe in a merge.
func held(plan *Plan) string {
	count := plan.To.K / plan.From.K
	if plan.From.Replication() {
		return fmt.Sprintf("%d copies", count)
	}
	return fmt.Sprintf("%d parity blocks", count)
}

func explainProxy(plan *Plan) []string {
	cost := plan.Cost
	if cost == (Cost{}) {
		return []string{"There is nothing to compute: no parity is added and the stripes stay as they are."}
	}
	sentences := []string{fmt.Sprintf("%s, all of them through one proxy, which receives %s and sends %s.",
		crossings(cost.BlocksSent), blocks(cost.MaxNodeBlocksReceived), blocks(cost.BlocksSent-cost.MaxNodeBlocksReceived))}
	sentences = append(sentences, readsAndWrites(cost))
	if cost.DataBlocksMoved > 0 {
		return append(sentences, fmt.Sprintf("%s to new nodes.", counted(cost.DataBlocksMoved, "data block moves", "data blocks move")))
	}
	return append(sentences, "No data block moves.")
}

func explainUpdate(plan *Plan) []string {
	cost := plan.Cost
	return []string{
		fmt.Sprintf("%s: %s once to each of %s.", crossings(cost.BlocksSent),
			counted(cost.DataBlocksMoved, "changed cell sends its difference", "changed cells send their differences"),
			counted(plan.To.M, "parity node", "parity nodes")),
		readsAndWrites(cost),
	}
}

func explainRepair(plan *Plan) []string {
	does := map[string]string{
		plannerRepair:      "send their part to the node that rebuilds",
		plannerRepairChain: "add their part one after the other, and the last sends the sum to the node that rebuilds",
		plannerRepairTree:  "add up their parts in pairs, and pairs of pairs, towards the node that rebuilds",
		plannerInitiator:   "send their block to one proxy, which decodes and sends the result to the node that lost it",
	}[plan.Planner]
	return []string{
		fmt.Sprintf("%s: %s of every stripe %s.", crossings(plan.Cost.BlocksSent),
			counted(plan.From.K, "survivor", "survivors"), does),
		readsAndWrites(plan.Cost), busiest(plan.Cost),
	}
}

func readsAndWrites(cost Cost) string {
	return fmt.Sprintf("%s read where they are stored and %s written.", were(cost.BlocksRead), were(cost.BlocksWritten))
}

func busiest(cost Cost) string {
	return fmt.Sprintf("The busiest node sends %s and the busiest receives %s.",
		blocks(cost.MaxNodeBlocksSent), blocks(cost.MaxNodeBlocksReceived))
}

func were(count int) string { return counted(count, "block is", "blocks are") }

func blocks(count int) string { return counted(count, "block", "blocks") }

func crossings(count int) string {
	return counted(count, "block crosses the network", "blocks cross the network")
}

func counted(count int, one, many string) string {
	if count == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", count, many)
}

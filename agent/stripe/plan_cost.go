package stripe

// count returns what running the plan costs.
func (p *Plan) count() Cost {
	cost := Cost{BlocksSent: len(p.Messages)}
	for _, program := range p.Programs {
		for _, input := range program.Inputs {
			if input.Kind == SourceBlock || input.Kind == SourceCopy {
				cost.BlocksRead++
			}
		}
		for _, row := range program.Rows {
			if row.Message < 0 {
				cost.BlocksWritten++
				if row.Slot < p.Layout.Columns {
					cost.DataBlocksMoved++
				}
			}
		}
	}
	sent, received := make(map[Position]int), make(map[Position]int)
	for _, message := range p.Messages {
		sent[message.From]++
		received[message.To]++
		cost.MaxNodeBlocksSent = max(cost.MaxNodeBlocksSent, sent[message.From])
		cost.MaxNodeBlocksReceived = max(cost.MaxNodeBlocksReceived, received[message.To])
	}
	return cost
}

// Bounds are the fewest whole blocks any plan can read and send, per group.
type Bounds struct {
	BlocksRead int `json:"blocksRead"`
	BlocksSent int `json:"blocksSent"`
}

// LowerBound returns lower bounds on reads and network for taking a group of layout l from one scheme to another
// without moving data. They hold for every layout of the same cells, so a layout that is not at the pairwise optimum
// stays above them. With l = lcm(k,k') cells per window, lI = l/k, lF = l/k', b = lI mod lF and m the lesser number of
// parities:
//
//	loose    D0 = b*(k - (k' mod k))
//	reads    (lI-b)*min(k,m) + b*min(k, m+k-(k' mod k));  l where parities are added
//	network  max(D0, m*(lF-1) + (parities added)*lF)
//
// The read bound is the access-optimal one of linear MDS convertible codes. Nothing is read or sent where k stays and
// m does not grow, or m becomes 0. from and to must be valid.
func LowerBound(l *Layout, from, to Scheme) Bounds {
	window := lcm(from.K, to.K)
	windows := l.Cells() / window
	added := max(0, to.M-from.M)
	if needsNoParity(from, to) {
		return Bounds{}
	}
	kept := min(from.M, to.M)
	initial, final := window/from.K, window/to.K
	split := initial % final
	overlap := to.K % from.K
	loose := split * (from.K - overlap)
	reads := (initial-split)*min(from.K, kept) + split*min(from.K, kept+from.K-overlap)
	if added > 0 {
		reads = window
	}
	network := max(loose, kept*(final-1)+added*final)
	return Bounds{BlocksRead: reads * windows, BlocksSent: network * windows}
}

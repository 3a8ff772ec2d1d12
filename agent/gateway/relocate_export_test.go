package gateway

// TakeLoss reports whether the records of all groups are to be looked at for losses, and takes that back.
func (g *Gateway) TakeLoss() bool { return g.agents.lost.Swap(false) }

package gateway

// HoldDecodes takes all the memory that fragments are decoded in, until release.
func (g *Gateway) HoldDecodes() (release func(), held bool) {
	return g.memory.decodes.try(g.memory.decodes.bytes)
}

// RepairWaits reports whether the repair of a group waits for what limits repair.
func (g *Gateway) RepairWaits() bool { return len(g.repairs.pacer.turn) > 0 }

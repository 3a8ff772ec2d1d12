// Package launch runs a whole cluster on one machine as a tree of processes: the stores, an agent beside each, and a
// gateway. It is what `restripe up` and the tests over real processes stand on.
//
// State directory:
//
//	lock                  held while a launcher runs the directory
//	cluster.json          what was launched, with the addresses, so that the next start finds the same ones
//	nodes.yaml            the members, as the gateway reads them
//	classes.yaml          the classes, where the caller gave a file
//	gateway.addr          where clients reach the cluster
//	catalog.db            the catalog (SQLite)
//	audit/                the audit log of the gateway
//	nodes/n1/agent.addr   where agent n1 listens
//	nodes/n1/store/       directory of the store of n1: blocks of a file store, append-only file of Redis
//	logs/n1.log           what the agent wrote; logs/n1-store.log its store, logs/gw1.log the gateway
//
// A process that dies is started again under the same address, unless it was halted. No child outlives its launcher:
// agents and gateways leave when their standard input closes, which the kernel does for a launcher that was killed;
// on Linux every child, stores included, is also killed with its parent.
package launch

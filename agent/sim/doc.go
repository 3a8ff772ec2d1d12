// Package sim runs gateways, agents and the catalog in one process over a simulated network, simulated disks and
// simulated clocks, lets everything fail that may fail, and checks what the protocol promises while it runs and after
// it has come to rest. The code under test is the code that ships, with its goroutines and timers.
//
// A run is a function of its seed where the program is: built and run by agent/sim/host, with a scheduler that has one thread and
// preempts nobody, with time that only goes by when every goroutine waits, and with randomness from the seed. Built like
// anything else a run does the same with the machine's own scheduling, in real time.
//
// Files: world (what there is and how a run goes), network and stream (messages), disk (stores), link (the catalog as a
// gateway sees it), process (starts and crashes), trouble (which faults when), clients (the workload), operate (what people
// do to the cluster), history (what clients saw; package register is what they may see), check (invariants at every commit
// and delete), loss (how much may be lost), settle (what must hold at rest).
package sim

// Command bench measures the data plane against named peers in the same run and prints what it finds as Markdown.
//
// Transitions run between agents that have one network namespace each, joined by links of a set rate: planner restripe
// against the proxy planners of the ERS and SRS papers and against re-encoding, on the same objects. The bytes the
// devices of those links counted are set against the plans. Growth is nodes that are added, and what becomes of the objects that are
// there, by columns that move and by what the Scale-RS paper compares. The data path is measured on loopback, against the same
// bytes written to and read from the same stores without any protection. Where CPU time goes by package is profiled apart
// from both, in clusters inside the bench.
//
// Everything the bench makes lies in namespaces of its own for processes, mounts and the network, so that nothing of it
// can be seen from the machine and the kernel removes all of it when the bench ends, however it ends. That takes root.
//
//	go run ./e2e/bench            # everything, about twenty minutes on two cores that others leave alone
//	go run ./e2e/bench -quick     # every part once, on few and small objects
//	go run ./e2e/bench -write     # also write docs/benchmarks
package main

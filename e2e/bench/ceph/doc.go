// Command ceph measures what it costs to change the code of data that Ceph holds: Ceph's own way, a new pool and a copy of
// every object, against Restripe's over pools of size 1 on the same OSDs.
//
// Both start from a fresh cluster of real Ceph daemons (Debian's packages), one OSD for each host, everything on the
// loopback device of a network namespace that holds nothing else. That takes root, and the build tag ceph.
//
//	go run -tags ceph ./e2e/bench/ceph            # 200 objects of 4 MiB
//	go run -tags ceph ./e2e/bench/ceph -quick     # few and small objects: shows that it works
//	go run -tags ceph ./e2e/bench/ceph -write     # also writes docs/benchmarks/ceph.md
package main

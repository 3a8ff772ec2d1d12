// Command clients measures a gateway by the protocols of Redis, memcached and HTTP, beside a plain Redis, a plain memcached and twemproxy
// in the same minutes: gets and sets by protocol, the workloads of YCSB, reads that find blocks lost, puts by scheme, large objects, and
// the memory that connections take. -only chooses among these parts, -write writes them into the page of measurements.
package main

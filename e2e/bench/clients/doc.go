// Command clients measures a gateway by the protocols of Redis, memcached, HTTP and S3, beside a plain Redis, a plain memcached, twemproxy,
// Ceph's gateway for S3 and versitygw in the same minutes: gets and sets by protocol, the workloads of YCSB, reads that find blocks lost,
// by one client and by many, puts by scheme, large objects, and the memory that connections take. -only chooses among these parts, -write
// writes them into the page of measurements.
package main

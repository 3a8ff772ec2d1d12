// Package pools makes, checks and removes the pools of Ceph that are Restripe's nodes.
//
// A node is one bucket of the CRUSH hierarchy, usually a host, addressed through a pool of size 1 whose rule takes that
// bucket: what is written to the pool lies on the OSDs below the bucket and nowhere else, once. Redundancy is Restripe's,
// across pools. Every such pool carries the application tag `restripe`, and the tag's metadata says which bucket, rule and
// failure domain it was made for; a pool without the tag is never changed.
//
// What decides (Prepare, PrepareRemoval, Check) is pure: it goes from a State to a Plan or to findings. Observe reads the
// State and Plan.Apply carries a plan out, both through a Monitor.
package pools

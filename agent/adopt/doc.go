// Package adopt brings the objects of an existing RADOS pool under Restripe, and takes objects of Restripe back into a
// plain pool.
//
// Both are one Job: objects are listed at a Source, streamed in parallel into a Target, read back from there and compared
// by checksum before they count. A journal file remembers what is done, so that a job that was killed, at any moment, goes
// on where it ended when it is started again: what is verified and has not changed since is skipped, everything else is
// done again. An object that changes while it is carried is noticed by its version and carried again.
//
// Nothing is lost on the way: an object of the target that the job did not write itself is left alone unless the caller
// says otherwise, and the source's is deleted only where that was asked for, after verification, in one operation that
// fails if the object is no longer the version that was verified.
//
// What cannot be carried is refused by name with the reason: pools of RBD, CephFS and RGW as a whole, single objects with
// attributes (xattrs) or an omap, which objects of Restripe do not have.
package adopt

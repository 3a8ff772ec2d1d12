// Package audit is an append-only log of what people did: who, from where, what, to what, what was before and after.
//
// An action is two records. Begin writes the first and returns once it is on disk; whoever cannot begin must not act. End
// writes the second. An action without an end is one whose outcome nobody recorded: the program ended in between.
//
// Every record carries the hash of the one before it, so that an edit, a gap or a swap is found by Verify. The file named
// head has the number and the hash of the newest record, so that records cut off the end are missed too. Whoever can
// write all files can forge them all; keep the head that Verify returns elsewhere, and hand it to a later Verify.
//
// A record is a line of JSON whose last field is the hash of everything before that field. Files are named after their
// first record and never changed once the next has begun; the oldest may be moved away, which Verify shows by the first
// record it found.
package audit

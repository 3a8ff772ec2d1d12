// Package transfer makes copies of a catalog: backups, catalogs restored from them, and a catalog on another engine in the place of the
// one that it was on.
//
// All three are one thing: the records of the source, as they are at one instant, are compared in their order with those that the
// destination has, and only what differs is written. So a copy that was broken off goes on where it was, by comparing again, and a
// catalog that is at work is copied once while it works and once more, which is quick, when it has been set aside. At the end the
// destination is read again as a whole, and its checksum is that of the source. Until then nothing opens it.
package transfer

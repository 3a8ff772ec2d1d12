// Package file keeps values as files of one directory on one disk.
//
//	<directory>/restripe-store          says that the directory is ours, and in which format
//	<directory>/lock                    held by the agent that uses the directory
//	<directory>/temporary/              values being written, where the file system has no nameless files
//	<directory>/values/<xx>/<yy>/<name> one value: its bytes and a footer of 16 bytes
//
// A value's name is its key, every / written as a space, which no key holds, and ".value". xx and yy spread the values over 4096
// directories by a hash of the key.
//
// A value is written to a nameless file, flushed to the disk, and then linked to its name, which fails if the name is
// taken; then the directory is flushed. A name therefore leads to a whole value or to nothing, after a crash as well,
// and whoever is told that a key exists knows that it will still exist after a power failure. The footer holds the
// length and the CRC-32C of the bytes: a file that was cut is recognised by any read, changed bytes by reads of the
// whole value; blocks carry checksums of their units for the rest.
package file

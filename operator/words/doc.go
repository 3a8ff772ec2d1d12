// Package words writes quantities for people: bytes, rates, counts, shares, lengths of time and estimates of them.
//
// The operator's conditions, the console, the command line and the terminal all write them here, so that one quantity reads
// the same wherever it is met: 1.5 GiB, 40 MiB/s, 11,478 objects, 74 %, 3 min 20 s, 14 min (11-19). It is pure: the time is
// passed in.
package words

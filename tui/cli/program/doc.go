// Package program is what every command line of Restripe shares, whichever commands it has: its streams and exit codes, complaints
// about wrong use, and servers, which take their flags from a file too, and tell who started them how they are.
package program

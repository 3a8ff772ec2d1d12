// Package cli is the command line of Restripe. A command parses its arguments, calls the package that does the work,
// and prints; it decides nothing about data.
//
// Exit codes: 0 done; 1 refused or failed, with the reason on standard error; 2 wrong use. Results go to standard
// output, progress and messages to standard error.
package cli

// Package replay says what a class would have cost that was used as a trace says: under every candidate that temperature.mode auto
// compares, and under auto itself.
package replay

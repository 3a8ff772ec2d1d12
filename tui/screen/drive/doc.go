// Package drive types keys into a terminal screen and reads what it shows, for tests and recordings. It runs the very
// program that a person runs, with its own input and output in place of a terminal's.
package drive

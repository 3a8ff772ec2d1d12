// Package diff tells how two states of a declared object differ, field by field.
package diff

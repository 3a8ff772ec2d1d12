// Package storetest is the conformance suite that every backend of package store runs, and the benchmarks that compare
// them. Subpackage server starts real servers for it.
package storetest

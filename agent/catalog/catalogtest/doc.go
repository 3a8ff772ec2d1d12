// Package catalogtest is the conformance suite that every catalog engine runs, and an engine that fails on demand.
package catalogtest

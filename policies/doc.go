// Package policies reads what people declare, in YAML, JSON or CUE, and finds the mistakes before anything reaches an
// API server: every problem of every file, with its place, what is wrong and what to do.
//
// schema.cue, embedded, is the schema of the four kinds and equals the Go types of operator/api/v1alpha1. A file becomes
// a tree with positions (yaml.go, json.go, compile.go), the tree is walked beside the schema (check.go), what the schema
// cannot say is checked on the typed values (rules.go, temperature.go), and what only several objects
// together get wrong last (together.go). Nothing here talks to a cluster.
//
// library has classes ready to use, examples whole small clusters, importer translates what other systems declare.
package policies

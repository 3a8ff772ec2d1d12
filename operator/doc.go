// Package operator runs the controllers of Restripe against a Kubernetes API server: a cluster's own, or the one that
// comes inside the binary.
package operator

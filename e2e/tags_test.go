//go:build !ceph

package e2e

// programTags are the build tags of the program under test.
const programTags = ""

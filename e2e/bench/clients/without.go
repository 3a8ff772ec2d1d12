//go:build !linux || !ceph

package main

import "context"

// buildTags are what this program is run with.
const buildTags = ""

// startCeph says why there is none.
func (b *bench) startCeph(context.Context, string) (*s3Server, string, error) {
	return nil, cephName + " is not among them: that takes `go run -tags ceph`, with what `e2e/bench/clients/setup.sh` installs.", nil
}

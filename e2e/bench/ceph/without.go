//go:build !linux || !ceph

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: it measures real Ceph on Linux; run it there with -tags ceph")
	os.Exit(1)
}

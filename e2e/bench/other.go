//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: it needs the network namespaces and traffic control of Linux; run it there")
	os.Exit(1)
}

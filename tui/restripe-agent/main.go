// Command restripe-agent is the part of Restripe for the machines with the data: an agent or a gateway, and nothing else.
package main

import (
	"os"

	"github.com/restripe/restripe/tui/cli/daemon"
)

func main() { os.Exit(daemon.Execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

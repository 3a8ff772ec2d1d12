// Command restripe is the whole system in one program: agents, gateways, a launcher for one machine, and the command
// line that talks to them.
package main

import (
	"os"

	"github.com/restripe/restripe/tui/cli"
)

func main() { os.Exit(cli.Execute(os.Args, os.Stdin, os.Stdout, os.Stderr)) }

// Command guest runs one seed of the simulation: guest SEED SIZE. It is built for wasip1 and run by agent/sim/host. The
// journal goes to standard output; its last line is the result as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/restripe/restripe/agent/sim"
)

// collectAfter is how much memory a run may take before the garbage collector begins to work; most runs end before.
const collectAfter = 192 << 20

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(2)
	}
}

func run(arguments []string) error {
	if len(arguments) != 3 {
		return fmt.Errorf("usage: guest SEED short|long")
	}
	seed, err := strconv.ParseUint(arguments[1], 10, 64)
	if err != nil {
		return fmt.Errorf("seed %q: %w", arguments[1], err)
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(collectAfter)
	result, err := json.Marshal(sim.Run(seed, sim.Size(arguments[2]), os.Stdout))
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s\n", result)
	return err
}

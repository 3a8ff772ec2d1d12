package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// edit replaces a passage that a file has once.
type edit struct {
	file, was, is string
}

// schedulerEdits make what Go's own runtime does a function of the seed. Files are named from the sources of the standard
// library. With them, the build tag faketime, one processor and no garbage collector a program has one thread, its
// goroutines are never preempted, and time stands still until all of them wait for it.
var schedulerEdits = []edit{
	// The thread that preempts goroutines that have run for long, which depends on the speed of the machine.
	{"runtime/proc.go", `const haveSysmon = GOARCH != "wasm"`, "const haveSysmon = false"},
	// While packages are initialised the main goroutine has a thread for itself, so that there are others for other goroutines,
	// and each thread has randomness of its own.
	{"runtime/proc.go", "	getg().m.lockedInt++\n	dolockOSThread()\n", "	getg().m.lockedInt++\n"},
	// All randomness, of maps, select and goroutines, comes from the first argument, which is the seed, instead of the kernel.
	{"runtime/rand.go", "	globalRand.state.Init(*seed)\n", `	clear(seed[:])
	for i, argument := 0, gostringnocopy(argv_index(argv, 1)); i < len(argument); i++ {
		seed[i%len(seed)] ^= argument[i]
	}
	globalRand.state.Init(*seed)
`},
	// The other two only save a quarter of the time: a look at all goroutines before each jump of the clock, and the growing
	// of stacks, of which the garbage collector would learn how large they best begin.
	{"runtime/proc.go", "	grunning := 0\n	forEachG(func(gp *g) {", "	grunning := 1\n	_ = (func(gp *g) {"},
	{"runtime/stack.go", "var startingStackSize uint32 = fixedStack", "var startingStackSize uint32 = 8 << 10"},
}

const guestPackage = "github.com/restripe/restripe/agent/sim/guest"

// build makes the guest program at path, out of the repository that the working directory is in. More files than those of
// the scheduler may be replaced, by the names of their originals.
func build(ctx context.Context, path string, replaced map[string]string) error {
	folder, err := os.MkdirTemp("", "sim-guest-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // what a build leaves in the folder for temporary files harms nobody
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("asking where Go is: %w", err)
	}
	all, err := apply(filepath.Join(strings.TrimSpace(string(root)), "src"), schedulerEdits, folder)
	if err != nil {
		return fmt.Errorf("this release of Go has another scheduler than the simulation knows: %w", err)
	}
	for original, copied := range replaced {
		all[original] = copied
	}
	overlay, err := json.Marshal(map[string]any{"Replace": all})
	if err != nil {
		return err
	}
	name := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(name, overlay, 0o600); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-tags", "faketime", "-overlay", name, "-o", path, guestPackage)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the guest: %w\n%s", err, output)
	}
	return nil
}

// apply makes the edits of files, named from root, in copies of them in folder, and returns the names of the copies by those of
// the originals.
func apply(root string, edits []edit, folder string) (map[string]string, error) {
	texts, copies := map[string]string{}, map[string]string{}
	for _, e := range edits {
		original := filepath.Join(root, filepath.FromSlash(e.file))
		text, read := texts[original]
		if !read {
			source, err := os.ReadFile(original)
			if err != nil {
				return nil, err
			}
			text = string(source)
		}
		if count := strings.Count(text, e.was); count != 1 {
			return nil, fmt.Errorf("%s has %d times %q, which is to be replaced: follow the change there", original, count, e.was)
		}
		texts[original] = strings.Replace(text, e.was, e.is, 1)
	}
	for original, text := range texts {
		copies[original] = filepath.Join(folder, strings.ReplaceAll(strings.TrimPrefix(original, root), string(filepath.Separator), "_"))
		if err := os.WriteFile(copies[original], []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return copies, nil
}

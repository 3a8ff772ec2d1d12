package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test program answer to the name restripe inside the scripts, and to what a console starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == evaluateName {
		os.Exit(Execute(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	typed := func() { os.Exit(Execute(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
	testscript.Main(m, map[string]func(){"restripe": typed, pluginName: typed, completerName: typed})
}

// TestScripts runs the stories of testdata/script: each types commands and reads what they print. A script that needs a
// cluster starts one with `restripe up` in the background.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv(gatewayVariable, "")
			env.Setenv("KUBECONFIG", "")
			for name, directory := range map[string]string{"TREE": "../../policies", "LARGER_TREE": "../../agent"} {
				path, err := filepath.Abs(directory)
				if err != nil {
					return err
				}
				env.Setenv(name, path)
			}
			env.Setenv("XDG_CACHE_HOME", env.WorkDir+"/.cache")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, negated bool, arguments []string){
			"reach": reach,
			"until": until,
			"exits": exits,
		},
	})
}

// reachPatience bounds the wait for a cluster to come up.
const reachPatience = 30 * time.Second

// reach FILE waits until FILE holds the address of a server that answers, and makes it the gateway of the script.
func reach(ts *testscript.TestScript, negated bool, arguments []string) {
	if negated || len(arguments) != 1 {
		ts.Fatalf("usage: reach FILE")
	}
	path := ts.MkAbs(arguments[0])
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	last := fmt.Errorf("not tried")
	for deadline := time.Now().Add(reachPatience); time.Now().Before(deadline); <-ticker.C {
		var text []byte
		if text, last = os.ReadFile(path); last != nil {
			continue
		}
		address := strings.TrimSpace(string(text))
		var connection net.Conn
		if connection, last = net.Dial("tcp", address); last != nil {
			continue
		}
		ts.Check(connection.Close())
		ts.Setenv(gatewayVariable, address)
		return
	}
	ts.Fatalf("%s: %v", path, last)
}

// untilPatience bounds the wait for what the operator does: it looks at gateways every 10 s.
const untilPatience = 90 * time.Second

// until [-not] REGEXP COMMAND... runs a command again and again until what it prints matches, or no longer does.
func until(ts *testscript.TestScript, negated bool, arguments []string) {
	not := len(arguments) > 0 && arguments[0] == "-not"
	if not {
		arguments = arguments[1:]
	}
	if negated || len(arguments) < 2 {
		ts.Fatalf("usage: until [-not] REGEXP COMMAND...")
	}
	pattern, err := regexp.Compile("(?m)" + arguments[0])
	ts.Check(err)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(untilPatience); time.Now().Before(deadline); <-ticker.C {
		err := ts.Exec(arguments[1], arguments[2:]...)
		printed := ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if err == nil && pattern.MatchString(printed) != not {
			return
		}
	}
	ts.Fatalf("%s: not so after %s:\n%s%s", arguments[0], untilPatience, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
}

// exits CODE COMMAND... runs a command that ends with an exit code.
func exits(ts *testscript.TestScript, negated bool, arguments []string) {
	if negated || len(arguments) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	var ended *exec.ExitError
	if err := ts.Exec(arguments[1], arguments[2:]...); errors.As(err, &ended) {
		code = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != arguments[0] {
		ts.Fatalf("exit code %d, want %s:\n%s%s", code, arguments[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

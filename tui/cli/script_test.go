package cli

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test program answer to the name restripe inside the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"restripe": func() { os.Exit(Execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the stories of testdata/script: each types commands and reads what they print. A script that needs a
// cluster starts one with `restripe up` in the background.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv(gatewayVariable, "")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, negated bool, arguments []string){
			"reach": reach,
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

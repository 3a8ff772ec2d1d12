//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// benchVariable makes this test program the bench.
const benchVariable = "RESTRIPE_BENCH_TESTED"

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	if os.Getenv(benchVariable) != "" {
		os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// needNamespaces skips a test where the bench itself would refuse.
func needNamespaces(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs a cluster in namespaces; -short leaves it out")
	}
	if os.Geteuid() != 0 {
		t.Skip("not run: it makes network namespaces, which takes root")
	}
	for _, program := range []string{"ip", "tc", "memcached", "redis-server"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("not run: %s is not in PATH; install iproute2, memcached and redis-server", program)
		}
	}
}

// benchCommand is the bench with a directory of its own for temporary files.
func benchCommand(t *testing.T, arguments ...string) (command *exec.Cmd, temporary string) {
	t.Helper()
	temporary = t.TempDir()
	command = exec.Command(os.Args[0], arguments...)
	command.Env = append(os.Environ(), benchVariable+"=1", "TMPDIR="+temporary)
	return command, temporary
}

var quickest = []string{"-quick", "-steps", "rs(4,1)->rs(5,1)", "-merges", ""}

// A quick run of all parts, one after the other, takes objects there and back by every planner, puts and gets them, rebuilds
// and scrubs them, with every byte compared; it writes its pages and leaves nothing behind.
func TestQuickRun(t *testing.T) {
	needNamespaces(t)
	documents := t.TempDir()
	command, temporary := benchCommand(t, append(quickest, "-write", "-documents", documents)...)
	var out, messages bytes.Buffer
	command.Stdout, command.Stderr = &out, &messages
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &messages)
	}
	pages := map[string]string{}
	for _, name := range []string{"transitions.md", "data-path.md", "repair.md", "scrub.md", "growth.md"} {
		page, err := os.ReadFile(filepath.Join(documents, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), string(page)) {
			t.Errorf("%s is not what was printed", name)
		}
		pages[name] = string(page)
	}
	checkTransitionsPage(t, pages["transitions.md"])
	checkRepairPage(t, pages["repair.md"])
	for name, rows := range map[string][]string{
		"data-path.md": {"| memcached | put | rs(4,2) |", "| redis | get | rep(3) |"},
		"scrub.md":     {"| rep(3), audit |", "| rs(10,4), shallow |"},
		"growth.md": {
			"| rs(4,2)->rs(6,2) | nothing moves (No-DM) |", "| rs(4,2)->rs(6,2) | all is copied |", "| rs(4,2)->rs(6,2) | by updates |",
		},
	} {
		for _, row := range rows {
			if !strings.Contains(strings.Join(strings.Fields(pages[name]), " "), row) {
				t.Errorf("%s has no row %q:\n%s", name, row, pages[name])
			}
		}
	}
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if processes := running(t, temporary); len(processes) != 0 {
		t.Errorf("still running: %v", processes)
	}
}

// checkTransitionsPage demands a row of every planner, with the blocks that its plan sends.
func checkTransitionsPage(t *testing.T, page string) {
	t.Helper()
	for _, want := range []string{"| rs(4,1)->rs(5,1) | 1000 |", "| rs(5,1)->rs(4,1) | 1000 |", "ers2-proxy |", "srs-proxy |", "reencode |", "commit: ", "| kernel of agents |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	// Of 8 groups of 20 cells: rs(4,1)->rs(5,1) sends 3 blocks each under restripe and 12 through the ERS-2 proxy.
	for planner, blocks := range map[string]string{"restripe": " 24 ", "ers2-proxy": " 96 "} {
		found := false
		for line := range strings.Lines(page) {
			found = found || strings.HasPrefix(line, "| rs(4,1)->rs(5,1) |") && strings.Contains(line, " "+planner+" |") && strings.Contains(line, "|"+strings.Repeat(" ", 9)+blocks+"|")
		}
		if !found {
			t.Errorf("no line says that %s sent%sblocks:\n%s", planner, blocks, page)
		}
	}
}

// However the bench ends, no process of it goes on; an interrupt also removes its files.
func TestEndsWhole(t *testing.T) {
	needNamespaces(t)
	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(end.String(), func(t *testing.T) {
			command, temporary := benchCommand(t, append(quickest, "-only", "transitions", "-objects", "8")...)
			messages, err := command.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			lines, seen := bufio.NewScanner(messages), ""
			for lines.Scan() && !strings.Contains(lines.Text(), "between agents") {
				seen += lines.Text() + "\n"
			}
			if len(running(t, temporary)) < 8 {
				t.Errorf("a cluster should run now: %v\n%s", running(t, temporary), seen)
			}
			if err := command.Process.Signal(end); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() { // to the end, so that nobody waits to write
			}
			var failure *exec.ExitError
			if err := command.Wait(); !errors.As(err, &failure) {
				t.Errorf("the bench ended with %v after a signal", err)
			}
			deadline := time.After(10 * time.Second)
			ticker := time.NewTicker(5 * time.Millisecond) // the kernel tells nobody when orphans have ended
			defer ticker.Stop()
			for len(running(t, temporary)) != 0 {
				select {
				case <-ticker.C:
				case <-deadline:
					t.Fatalf("still running: %v", running(t, temporary))
				}
			}
			left, err := os.ReadDir(temporary)
			if err != nil || end == syscall.SIGINT && len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// running lists the processes that have a path in their command line.
func running(t *testing.T, path string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && bytes.Contains(text, []byte(path)) { // an error means that it has ended
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

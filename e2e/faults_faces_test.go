package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/gateway/client"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
)

// TestUpOverEveryStore runs the whole program the way a newcomer does, over every kind of store, and interrupts it:
// nothing may be left running.
func TestUpOverEveryStore(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"file", "memcached", "redis"} {
		t.Run(kind, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			command := exec.Command(program(t), "up", "--store", kind, "--agents", "5", "--classes", write(t, "classes.yaml", smallClasses), "--dir", state, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0")
			var messages bytes.Buffer
			command.Stderr = &messages
			printed, err := command.StdoutPipe()
			if err == nil {
				err = command.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			interrupted := false
			interrupt := func() {
				if interrupted {
					return
				}
				interrupted = true
				if err := command.Process.Signal(os.Interrupt); err != nil {
					t.Errorf("interrupting restripe up: %v", err)
				}
				if err := command.Wait(); err != nil {
					t.Errorf("restripe up after Ctrl-C: %v\n%s", err, messages.String())
				}
			}
			t.Cleanup(interrupt)
			lines := bufio.NewScanner(printed)
			console := ""
			for lines.Scan() && !strings.Contains(lines.Text(), "Ctrl-C") {
				if address, found := strings.CutPrefix(lines.Text(), "console  "); found {
					console, _, _ = strings.Cut(address, " ")
				}
			}
			text, err := os.ReadFile(filepath.Join(state, "gateway.addr"))
			if err != nil {
				t.Fatalf("restripe up has left no address: %v\n%s", err, messages.String())
			}
			address := strings.TrimSpace(string(text))
			children := childrenOf(t, command.Process.Pid)
			want := 5 + 1
			if kind != "file" {
				want += 5
			}
			if len(children) != want {
				t.Errorf("restripe up has %d children, want %d", len(children), want)
			}
			file, back := write(t, "file", string(noise(1, 3<<20))), filepath.Join(t.TempDir(), "back")
			must(t, address, "put", file, "k")
			moved := must(t, address, "transition", "start", "--to", "rs(2,1)", "--class", "default", "--wait")
			if !strings.Contains(moved, "done") {
				t.Errorf("the transition shows:\n%s", moved)
			}
			must(t, address, "get", "k", back)
			if sent, came := read(t, file), read(t, back); !bytes.Equal(sent, came) {
				t.Errorf("%d bytes came back that are not the %d stored", len(came), len(sent))
			}
			if stat := must(t, address, "stat", "k"); !strings.Contains(stat, "scheme    rs(2,1)") {
				t.Errorf("stat shows:\n%s", stat)
			}
			must(t, address, "doctor")
			until(t, "the console shows the object", func() bool {
				overview, err := consolev1connect.NewConsoleClient(http.DefaultClient, console).GetOverview(t.Context(), &consolev1.GetOverviewRequest{})
				return err == nil && overview.SafetyLine == "The one object can lose 1 node." && overview.Nodes.ByState["up"] == 5
			})
			interrupt()
			for _, pid := range children {
				if running(pid) {
					t.Errorf("process %d of restripe up --store %s still runs", pid, kind)
				}
			}
			if a := restripe(t, address, "ls"); a.code != 1 || !strings.Contains(a.messages, "restripe up") {
				t.Errorf("with the cluster gone ls ends with %d and says\n%s", a.code, a.messages)
			}
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// statusOf returns the state and the parent of a process, as Linux tells them (proc(5)); ok is false if there is none.
func statusOf(pid int) (state string, parent int, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return "", 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0], parent, err == nil
}

func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Skipf("the children of a process cannot be told: %v", err)
	}
	var children []int
	for _, entry := range entries {
		if other, err := strconv.Atoi(entry.Name()); err == nil {
			if _, parent, ok := statusOf(other); ok && parent == pid {
				children = append(children, other)
			}
		}
	}
	return children
}

// running reports whether a process runs; one that nobody has waited for does not.
func running(pid int) bool {
	state, _, ok := statusOf(pid)
	return ok && state != "Z" && syscall.Kill(pid, 0) == nil
}

// TestListsInEveryFormat asks every list for every format it has.
func TestListsInEveryFormat(t *testing.T) {
	t.Parallel()
	g := gatewayOver(t, smallClasses, agentsOver(t, directories(t, 4)...)...)
	c := clientOf(t, g.address)
	keys := []string{"a", "b c", "d\nwith a line end", "e: [yaml}"}
	for _, key := range keys {
		put(t, c, key, noise(1, 2_000), client.PutOptions{})
	}
	must(t, g.address, "transition", "start", "--to", "rs(2,1)", "--prefix", "a", "--wait")
	for _, list := range []struct {
		arguments string
		formats   string
		entries   int // of the json, -1: it is no list
		head      string
	}{
		{"ls", "table wide json yaml name", len(keys), "KEY"},
		{"classes", "table wide json yaml name", 1, "CLASS"},
		{"transition list", "table wide json yaml name", 1, "ID"},
		{"doctor", "table wide json yaml name", 1, "SEVERITY"},
		{"ladders --nodes 14", "table wide json yaml name", -1, ""},
		{"node list", "table wide json yaml name", 4, "NODE"},
		{"node list n2", "table wide json yaml name", 1, "NODE"},
		{"node patience", "table json yaml", -1, "STATE"},
		{"status", "table wide json yaml", -1, "CLASS"},
		{"stat a", "table wide json yaml", -1, "GROUP"},
		{"sweep", "table json yaml", -1, "WHAT"},
		{"repair", "table json yaml", -1, "WHAT"},
	} {
		for _, format := range strings.Fields(list.formats) {
			t.Run(list.arguments+" -o "+format, func(t *testing.T) {
				out := must(t, g.address, append(strings.Fields(list.arguments), "-o", format)...)
				var value any
				switch format {
				case "json":
					if err := json.Unmarshal([]byte(out), &value); err != nil {
						t.Fatalf("%v in\n%s", err, out)
					}
				case "yaml":
					if err := yaml.Unmarshal([]byte(out), &value); err != nil {
						t.Fatalf("%v in\n%s", err, out)
					}
				case "name":
					if lines := strings.Split(strings.TrimSpace(out), "\n"); list.entries >= 0 && len(lines) != list.entries {
						t.Errorf("%d lines for %d entries:\n%s", len(lines), list.entries, out)
					}
					return
				default:
					if !strings.Contains(out, list.head) || list.entries >= 0 && strings.Count(out, "\n") != list.entries+1 {
						t.Errorf("want a head with %s and %d lines:\n%s", list.head, list.entries, out)
					}
					return
				}
				if object, is := value.(map[string]any); is && object["objects"] != nil && list.arguments == "ls" {
					value = object["objects"]
				}
				if entries, is := value.([]any); list.entries >= 0 && (!is || len(entries) != list.entries) {
					t.Errorf("want a list of %d entries:\n%s", list.entries, out)
				}
			})
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := must(t, "", "completion", shell); len(script) < 1000 || !strings.Contains(script, "restripe") {
			t.Errorf("completion for %s is\n%s", shell, script)
		}
	}
	if words := must(t, "", "__complete", "plan", "--mode", ""); !strings.Contains(words, "free") {
		t.Errorf("completing plan --mode offers\n%s", words)
	}
}

// TestPlanAsJSON holds the machine-readable plan and layout to what is documented, with the numbers of the table of
// transitions: block for block, next to ERS-2, re-encoding and copying to a new pool.
func TestPlanAsJSON(t *testing.T) {
	t.Parallel()
	type counts struct {
		BlocksRead *int `json:"blocksRead"`
		BlocksSent *int `json:"blocksSent"`
	}
	for _, test := range []struct {
		from, to                               string
		cells, rows, columns, sent, bound      int
		throughProxy, reencoded, copiedToAPool int // -1: does not apply
	}{
		{"rs(4,1)", "rs(5,1)", 20, 4, 5, 3, 3, 12, 24, 44},
		{"rs(4,3)", "rs(5,3)", 20, 4, 5, 9, 9, 30, 32, 52},
		{"rs(6,3)", "rs(12,3)", 12, 1, 12, 0, 0, 9, 15, 27},
		{"rep(3)", "rs(12,2)", 12, 1, 12, 0, 0, -1, 14, 26},
		{"rs(8,3)", "rs(10,3)", 40, 4, 10, 12, 9, 33, 52, 92},
		{"rs(8,3)", "rs(6,3)", 24, 3, 8, 12, 9, 27, 36, 60},
	} {
		t.Run(test.from+" to "+test.to, func(t *testing.T) {
			text := must(t, "", "plan", "--from", test.from, "--to", test.to, "-o", "json")
			var fields map[string]json.RawMessage
			var plan struct {
				Cells, Rows, Columns    int
				Planner                 string
				Proved                  bool
				BlocksSent              int `json:"blocksSent"`
				BlocksWritten           int `json:"blocksWritten"`
				DataBlocksMoved         int `json:"dataBlocksMoved"`
				Bounds                  counts
				Baselines               map[string]*counts
				MaxNodeBlocksSent       int `json:"maxNodeBlocksSent"`
				MaxNodeBlocksReceived   int `json:"maxNodeBlocksReceived"`
				BlocksReadAtTheOldNodes int `json:"blocksRead"`
			}
			for _, into := range []any{&fields, &plan} {
				if err := json.Unmarshal([]byte(text), into); err != nil {
					t.Fatalf("%v in\n%s", err, text)
				}
			}
			for _, key := range strings.Fields("cells rows columns planner proved blocksRead blocksSent blocksWritten dataBlocksMoved " +
				"maxNodeBlocksSent maxNodeBlocksReceived bounds baselines") {
				if _, there := fields[key]; !there {
					t.Errorf("no key %q in\n%s", key, text)
				}
			}
			if !plan.Proved || plan.Planner != "restripe" || plan.DataBlocksMoved != 0 {
				t.Errorf("planner %s, proved %t, %d data blocks moved", plan.Planner, plan.Proved, plan.DataBlocksMoved)
			}
			if plan.Cells != test.cells || plan.Rows != test.rows || plan.Columns != test.columns {
				t.Errorf("%d cells in %d rows of %d, want %d, %d and %d", plan.Cells, plan.Rows, plan.Columns, test.cells, test.rows, test.columns)
			}
			if plan.BlocksSent != test.sent || plan.Bounds.BlocksSent == nil || *plan.Bounds.BlocksSent != test.bound {
				t.Errorf("%d blocks sent, want %d with a lower bound of %d:\n%s", plan.BlocksSent, test.sent, test.bound, text)
			}
			for name, want := range map[string]int{"ers2-proxy": test.throughProxy, "reencode": test.reencoded, "copy-pool": test.copiedToAPool} {
				switch have, there := plan.Baselines[name]; {
				case !there:
					t.Errorf("baseline %s is not told", name)
				case want < 0 && have != nil:
					t.Errorf("baseline %s does not apply and sends %d", name, *have.BlocksSent)
				case want >= 0 && (have == nil || have.BlocksSent == nil || *have.BlocksSent != want):
					t.Errorf("baseline %s: want %d blocks sent in\n%s", name, want, text)
				}
			}
		})
	}
	var layout struct {
		Rows, Columns int
		Partitions    map[string][][][2]int
		Matrix        [][]int
	}
	if err := json.Unmarshal([]byte(must(t, "", "layout", "--ladder", "rs(4,3),rs(5,3)", "-o", "json")), &layout); err != nil {
		t.Fatal(err)
	}
	if layout.Rows != 4 || layout.Columns != 5 || len(layout.Partitions["rs(4,3)"]) != 5 || len(layout.Partitions["rs(5,3)"]) != 4 || len(layout.Matrix) != 3 {
		t.Errorf("the layout is %+v", layout)
	}
	for scheme, stripes := range layout.Partitions {
		seen := map[[2]int]bool{}
		for _, stripe := range stripes {
			columns := map[int]bool{}
			for _, cell := range stripe {
				seen[cell], columns[cell[1]] = true, true
			}
			if len(columns) != len(stripe) {
				t.Errorf("%s: stripe %v has two cells on one node", scheme, stripe)
			}
		}
		if len(seen) != layout.Rows*layout.Columns {
			t.Errorf("%s covers %d of %d cells", scheme, len(seen), layout.Rows*layout.Columns)
		}
	}
}

// TestWatchedStatusEndsQuietly interrupts a status that is being watched, which is its ordinary end.
func TestWatchedStatusEndsQuietly(t *testing.T) {
	t.Parallel()
	g := gatewayOver(t, smallClasses, agentsOver(t, directories(t, 3)...)...)
	command := exec.Command(program(t), "status", "--watch", "--interval", "100ms", "--gateway", g.address)
	var messages bytes.Buffer
	command.Stderr = &messages
	printed, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	pictures := 0
	for lines := bufio.NewScanner(printed); pictures < 3 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "cluster ") {
			pictures++
		}
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() {
		if err := command.Process.Kill(); err != nil {
			t.Errorf("killing a status that does not end: %v", err)
		}
	})
	defer timer.Stop()
	if err := command.Wait(); err != nil || pictures < 3 || messages.Len() > 0 {
		t.Errorf("after %d pictures and Ctrl-C: %v\n%s", pictures, err, messages.String())
	}
}

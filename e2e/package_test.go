package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// What the program for the machines with the data may weigh, stripped, and hold in memory while it has nothing to do.
const (
	lightProgramBytes = 40 << 20
	lightMemoryKiB    = 32 << 10
)

// packageTags are what released programs are built with: without tracing, gRPC does without templates, with which the linker would
// keep every method of every type.
const packageTags = "grpcnotrace"

// The program for the machines with the data knows neither Kubernetes nor the faces.
func TestPackageOfAgentsKnowsNoFaces(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "list", "-tags", packageTags, "-deps", "../tui/restripe-agent")
	list, err := command.Output()
	if err != nil {
		t.Fatalf("listing what restripe-agent is made of: %v", err)
	}
	foreign := []string{
		"html/template", "k8s.io/", "sigs.k8s.io/controller-runtime", "charm.land/", "github.com/charmbracelet/", "cuelang.org/",
		"connectrpc.com/", "go.etcd.io/etcd/server/", "go.etcd.io/raft/", "go.etcd.io/bbolt",
		module + "/operator", module + "/policies", module + "/web", module + "/tui/screen",
	}
	packages := strings.Fields(string(list))
	for _, name := range packages {
		for _, prefix := range foreign {
			if strings.HasPrefix(name, prefix) {
				t.Errorf("restripe-agent has %s in it; `go list -deps` and `go mod why` say by what", name)
			}
		}
	}
	if len(packages) < 100 {
		t.Errorf("only %d packages were looked at", len(packages))
	}
	for _, path := range []string{"../Makefile", "../playbooks/package/build.sh", "../playbooks/images/build.sh"} {
		for line := range strings.Lines(readFile(t, path)) {
			if strings.Contains(line, "-trimpath ") && !strings.Contains(line, packageTags) {
				t.Errorf("%s builds without %s: %s", path, packageTags, line)
			}
		}
	}
}

// It is small, and holds little while it has nothing to do.
func TestPackageOfAgentsIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves it out")
	}
	directory := t.TempDir()
	path := filepath.Join(directory, "restripe-agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", packageTags, "-ldflags", "-s -w", "-o", path,
		"../tui/restripe-agent")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building restripe-agent: %v\n%s", err, output)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > lightProgramBytes {
		t.Errorf("restripe-agent has %d bytes, %d are allowed", info.Size(), lightProgramBytes)
	}
	config := filepath.Join(directory, "n1.yaml")
	writeFile(t, config, fmt.Sprintf("command: agent\nid: n1\nstore: file:%s/store\n", directory))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	agent := exec.CommandContext(ctx, path, "agent", "--config", config)
	agent.Cancel = func() error { return agent.Process.Signal(os.Interrupt) }
	said, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.HasPrefix(line, "agent n1 listening on ") {
		t.Errorf("the agent says %q, %v", line, err)
	}
	status := readFile(t, fmt.Sprintf("/proc/%d/status", agent.Process.Pid))
	match := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindStringSubmatch(status)
	if match == nil {
		t.Fatalf("the system does not tell how much memory the agent holds:\n%s", status)
	}
	kib, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("restripe-agent has %d bytes, and holds %d KiB while it has nothing to do", info.Size(), kib)
	if kib > lightMemoryKiB {
		t.Errorf("an agent that has nothing to do holds %d KiB, %d are allowed", kib, lightMemoryKiB)
	}
	cancel()
	if err := agent.Wait(); err != nil && ctx.Err() == nil {
		t.Errorf("the agent ended with %v", err)
	}
}

// most exposure that systemd may see in a unit, of 100.
const mostExposure = 20

// The units are as systemd wants them, and give what they start few rights.
func TestPackageUnits(t *testing.T) {
	units, err := filepath.Glob("../playbooks/package/*.service")
	if err != nil || len(units) != 4 {
		t.Fatalf("there are %d units: %v", len(units), err)
	}
	root := t.TempDir()
	place := func(name, text string) {
		path := filepath.Join(root, "lib/systemd/system", name)
		writeFile(t, path, text)
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"restripe", "restripe-agent"} {
		writeFile(t, filepath.Join(root, "usr/bin", name), "#!/bin/sh\n")
	}
	for _, name := range []string{"network-online", "network", "sysinit", "basic", "shutdown", "multi-user"} {
		place(name+".target", "[Unit]\nDescription="+name+"\n")
	}
	for _, path := range units {
		name := filepath.Base(path)
		unit := readFile(t, path)
		place(name, unit)
		verified := strings.Replace(name, "@.", "@n1.", 1)
		for _, arguments := range [][]string{
			{"verify", "--man=no", "--root=" + root, verified},
			{"security", "--no-pager", "--offline=yes", "--root=" + root, fmt.Sprintf("--threshold=%d", mostExposure), verified},
		} {
			output, err := exec.CommandContext(t.Context(), "systemd-analyze", arguments...).CombinedOutput()
			if err != nil || arguments[0] == "verify" && len(output) > 0 {
				t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(arguments, " "), err, output)
			}
		}
		for _, line := range []string{"Type=notify", "User=restripe", "Restart=on-failure", "StateDirectory=restripe", "WatchdogSec=60"} {
			if !strings.Contains(unit, "\n"+line+"\n") {
				t.Errorf("%s lacks %s", name, line)
			}
		}
		limit := regexp.MustCompile(`(?m)^MemoryMax=(\d+)([MG])$`).FindStringSubmatch(unit)
		if limit == nil {
			t.Errorf("%s may take all memory of the machine", name)
			continue
		}
		service := strings.Replace(strings.TrimSuffix(name, ".service"), "@", "@NODE", 1)
		row := regexp.MustCompile(`(?m)^\| ` + service + ` \|.*\| ` + limit[1] + " " + limit[2] + `iB \|$`)
		if !row.MatchString(contents(t, "docs/configuration.md")) {
			t.Errorf("%s may take %s%siB, and docs/configuration.md says something else of %s", name, limit[1], limit[2], service)
		}
	}
}

// Each package brings its program, the units of that, manual pages, and what bash, zsh and fish complete.
func TestPackageContents(t *testing.T) {
	for name, units := range map[string][]string{
		"restripe-agent": {"restripe-agent@.service", "restripe-gateway.service"},
		"restripe":       {"restripe-operator.service", "restripe-console.service"},
	} {
		var packed struct {
			Contents []struct{ Src, Dst string }
		}
		if err := yaml.Unmarshal([]byte(contents(t, "playbooks/package/"+name+".yaml")), &packed); err != nil {
			t.Fatal(err)
		}
		var brought []string
		for _, file := range packed.Contents {
			brought = append(brought, file.Src+" "+file.Dst)
		}
		pages := "bin/packages/build/doc/" + name
		wanted := []string{
			"bin/packages/build/" + name + " /usr/bin/" + name,
			pages + "/man1/ /usr/share/man/man1",
			pages + "/bash/" + name + " /usr/share/bash-completion/completions/" + name,
			pages + "/zsh/_" + name + " /usr/share/zsh/vendor-completions/_" + name,
			pages + "/fish/" + name + ".fish /usr/share/fish/vendor_completions.d/" + name + ".fish",
		}
		for _, unit := range units {
			wanted = append(wanted, "playbooks/package/"+unit+" /lib/systemd/system/"+unit)
		}
		for _, want := range wanted {
			if !slices.Contains(brought, want) {
				t.Errorf("the package %s does not bring %s", name, want)
			}
		}
	}
}

//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// provenance says where numbers come from.
type provenance struct {
	date, processor, kernel, commit, command, load string
	cores                                          int
}

func readProvenance(o options) (provenance, error) {
	p := provenance{date: time.Now().UTC().Format("2006-01-02 15:04 MST"), cores: runtime.NumCPU(), command: o.command}
	information, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return p, fmt.Errorf("reading the processor's name: %w", err)
	}
	p.processor = parseProcessor(string(information))
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return p, fmt.Errorf("reading the load: %w", err)
	}
	p.load, _, _ = strings.Cut(string(load), " ")
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return p, fmt.Errorf("reading the kernel's name: %w", err)
	}
	p.kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	p.commit = readCommit()
	return p, nil
}

// readCommit names the commit of the working directory, and says where it is not what ran.
func readCommit() string {
	commit, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown: not run in a checkout"
	}
	text := strings.TrimSpace(string(commit))
	changes, err := exec.Command("git", "status", "--porcelain").Output()
	if err != nil || len(changes) > 0 {
		text += ", with changes that are not committed"
	}
	return text
}

// parseProcessor finds the name and the family of the processor in the text of /proc/cpuinfo.
func parseProcessor(text string) string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, separated := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if _, there := found[name]; separated && !there {
			found[name] = strings.TrimSpace(value)
		}
	}
	if found["model name"] == "" {
		return "unknown"
	}
	return fmt.Sprintf("%s (family %s, model %s)", found["model name"], found["cpu family"], found["model"])
}

// lines is the provenance as a Markdown list, followed by lines about the part.
func (p provenance) lines(more ...string) string {
	list := append([]string{
		"date: " + p.date,
		fmt.Sprintf("machine: %s, %d cores, %s", p.processor, p.cores, p.kernel),
		"load average before the run: " + p.load + " (with more than about 0.3 something else was running: times are then preliminary)",
		"commit: " + p.commit,
		"command: `" + p.command + "`",
	}, more...)
	return "- " + strings.Join(list, "\n- ") + "\n"
}

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// commit is what the program was built from; the linker sets it (see the target bench-kernel of the Makefile).
var commit string

// provenance says where numbers come from.
type provenance struct {
	date, processor, kernel, load string
	cores                         int
}

func readProvenance() (provenance, error) {
	p := provenance{date: time.Now().UTC().Format("2006-01-02 15:04 MST"), cores: runtime.NumCPU()}
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
	return p, nil
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
	return fmt.Sprintf("%s (family %s, model %s, stepping %s)", found["model name"], found["cpu family"], found["model"], found["stepping"])
}

func commitText() string {
	if commit == "" {
		return "unknown: not built by `make bench-kernel` in a checkout"
	}
	if clean, changed := strings.CutSuffix(commit, "-dirty"); changed {
		return clean + ", with changes that are not committed"
	}
	return commit
}

// lines is the provenance as a Markdown list, followed by lines about the run.
func (p provenance) lines(more ...string) string {
	list := append([]string{
		"date: " + p.date,
		fmt.Sprintf("machine: %s, %d cores, %s", p.processor, p.cores, p.kernel),
		"load average before the run: " + p.load + " (with more than about 0.3 something else was running)",
		"commit: " + commitText(),
	}, more...)
	return "- " + strings.Join(list, "\n- ") + "\n"
}

// versionOf returns the version of a module this program is built with.
func versionOf(path string) (string, error) {
	information, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("reading the versions of peers: the program was built without information on modules")
	}
	for _, module := range information.Deps {
		if module.Path == path {
			return module.Version, nil
		}
	}
	return "", fmt.Errorf("reading the versions of peers: the program was built without %s", path)
}

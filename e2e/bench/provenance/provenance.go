// Package provenance says where measured numbers come from, at the head of the pages that show them.
package provenance

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Facts are what numbers depend on beside what is measured.
type Facts struct {
	Date, Release     string // when, and by which release of Go
	Processor, Memory string
	Kernel, Load      string // Load is the average of the minute before
	Commit, Command   string
	Cores             int
}

// Read learns them. Command is what was typed.
func Read(command string) (Facts, error) {
	f := Facts{
		Date: time.Now().UTC().Format("2006-01-02 15:04 MST"), Release: runtime.Version(), Cores: runtime.NumCPU(),
		Commit: commit(), Command: command,
	}
	text := map[string]string{}
	for _, name := range []string{"cpuinfo", "meminfo", "loadavg", "sys/kernel/ostype", "sys/kernel/osrelease"} {
		content, err := os.ReadFile("/proc/" + name)
		if err != nil {
			return f, fmt.Errorf("reading what machine this is: %w", err)
		}
		text[name] = strings.TrimSpace(string(content))
	}
	var kibibytes int64
	if _, err := fmt.Sscan(values(text["meminfo"])["MemTotal"], &kibibytes); err != nil {
		return f, fmt.Errorf("reading how much memory there is: %w", err)
	}
	f.Memory = fmt.Sprintf("%.0f GiB", float64(kibibytes)/(1<<20))
	f.Processor = processor(text["cpuinfo"])
	f.Load, _, _ = strings.Cut(text["loadavg"], " ")
	f.Kernel = text["sys/kernel/ostype"] + " " + text["sys/kernel/osrelease"]
	return f, nil
}

// commit names the commit of the working directory, and says where it is not what ran.
func commit() string {
	name, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown: not run in a checkout"
	}
	text := strings.TrimSpace(string(name))
	changes, err := exec.Command("git", "status", "--porcelain").Output()
	if err != nil || len(changes) > 0 {
		text += ", with changes that are not committed"
	}
	return text
}

// values are the first of each name in a text of lines "name: value".
func values(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, separated := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if _, there := found[name]; separated && !there {
			found[name] = strings.TrimSpace(value)
		}
	}
	return found
}

// processor is the name and the family of the processor in the text of /proc/cpuinfo.
func processor(text string) string {
	found := values(text)
	if found["model name"] == "" {
		return "unknown"
	}
	return fmt.Sprintf("%s (family %s, model %s)", found["model name"], found["cpu family"], found["model"])
}

// List is a Markdown list of the facts, followed by more lines. Disturbed says what holds of the numbers where something else was
// running.
func (f Facts) List(disturbed string, more ...string) string {
	list := append([]string{
		"date: " + f.Date + ", " + f.Release,
		fmt.Sprintf("machine: %s, %d cores, %s, %s", f.Processor, f.Cores, f.Memory, f.Kernel),
		fmt.Sprintf("load average before the run: %s (with more than about 0.3 something else was running: %s)", f.Load, disturbed),
		"commit: " + f.Commit,
		"command: `" + f.Command + "`",
	}, more...)
	return "- " + strings.Join(list, "\n- ") + "\n"
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The page of the program names the plugin of kubectl that it is, and shells complete that by its name, too. restripe-agent is none.
func TestThePluginIsNamed(t *testing.T) {
	directory := t.TempDir()
	if err := run([]string{directory}); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if page := read("restripe/man1/restripe.1"); !strings.Contains(page, "kubectl restripe") || !strings.Contains(page, "plugin of kubectl") {
		t.Errorf("the page does not name the plugin:\n%s", page[:min(len(page), 1000)])
	}
	for name, line := range map[string]string{
		"zsh/_restripe": "#compdef restripe kubectl-restripe\n", "fish/restripe.fish": "\ncomplete -c kubectl-restripe -w restripe\n",
	} {
		if !strings.Contains(read("restripe/"+name), line) {
			t.Errorf("%s has no line %q", name, line)
		}
	}
	said, err := exec.CommandContext(t.Context(), "bash", "-c", `source "$0" && complete -p restripe kubectl-restripe`,
		filepath.Join(directory, "restripe/bash/restripe")).CombinedOutput()
	if err != nil || strings.Count(string(said), "__start_restripe") != 2 {
		t.Errorf("bash completes %v, %s", err, said)
	}
	for _, name := range []string{"man1/restripe-agent.1", "bash/restripe-agent", "zsh/_restripe-agent", "fish/restripe-agent.fish"} {
		if strings.Contains(read("restripe-agent/"+name), "kubectl") {
			t.Errorf("%s names kubectl", name)
		}
	}
}

package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/restripe/restripe/tui/cli/program"
)

// The names of the program: its own, and those by which kubectl calls a plugin, and asks it what may be typed next.
const (
	programName   = "restripe"
	pluginName    = "kubectl-restripe"
	completerName = "kubectl_complete-restripe"
)

// pluginCall is what people type where the program is a plugin.
const pluginCall = "kubectl restripe"

// calledBy is what a command line means by the name that it begins with, and whether that is one of a plugin of kubectl.
func calledBy(line []string) (arguments []string, plugin bool) {
	if len(line) == 0 {
		return nil, false
	}
	switch filepath.Base(line[0]) {
	case pluginName:
		return line[1:], true
	case completerName:
		return append([]string{cobra.ShellCompRequestCmd}, line[1:]...), true
	}
	return line[1:], false
}

// asPlugin has the help of all commands say what people type who call the program through kubectl. What shells complete is kubectl's.
func asPlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginCall}
	root.CompletionOptions.DisableDefaultCmd = true
	spelled := func(text string) string { return program.Spelled(text, programName, pluginCall) }
	var walk func(*cobra.Command)
	walk = func(command *cobra.Command) {
		command.Short, command.Long = spelled(command.Short), spelled(command.Long)
		command.Example = strings.ReplaceAll(command.Example, programName+" ", pluginCall+" ")
		command.LocalFlags().VisitAll(func(flag *pflag.Flag) { flag.Usage = spelled(flag.Usage) })
		for _, child := range command.Commands() {
			walk(child)
		}
	}
	walk(root)
}

package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set at link time: -ldflags "-X github.com/restripe/restripe/tui/cli.version=...".
var version = ""

func versionCommand(s *session) *cobra.Command {
	command := &cobra.Command{Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs}
	command.RunE = func(*cobra.Command, []string) error {
		return writeLines(s.out, []string{fmt.Sprintf("restripe %s, %s, %s/%s", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)})
	}
	return command
}

// versionText is the version given at link time, else the revision the program was built from.
func versionText() string {
	if version != "" {
		return version
	}
	info, there := debug.ReadBuildInfo()
	if !there {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return info.Main.Version
}

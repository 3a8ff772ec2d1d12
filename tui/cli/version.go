package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the release that this program is, or comes before where CHANGELOG.md has changes that are unreleased.
const release = "v0.1.0"

func versionCommand(s *session) *cobra.Command {
	command := &cobra.Command{Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs}
	command.RunE = func(*cobra.Command, []string) error {
		return writeLines(s.out, []string{fmt.Sprintf("restripe %s, %s, %s/%s", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)})
	}
	return command
}

// versionText is the release, with the revision that it was built from where that is known, as semantic versioning writes builds.
func versionText() string {
	info, there := debug.ReadBuildInfo()
	if !there {
		return release
	}
	build := ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			build = "+" + setting.Value[:min(12, len(setting.Value))]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			build += ".modified"
		}
	}
	return release + build
}

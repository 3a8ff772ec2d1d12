package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
)

// unsaid stands for what a gateway of an earlier release does not say.
const unsaid = "-"

func classesCommand(s *session) *cobra.Command {
	command := &cobra.Command{Use: "classes", Short: "List the object classes and their ladders", Args: cobra.NoArgs}
	format := outputFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		return s.withClient(func(c *client.Client) error {
			classes, err := c.Classes(command.Context())
			if err != nil {
				return err
			}
			l := listing{value: classes, empty: "There are no classes.", columns: []column{
				{title: "CLASS"}, {title: "LADDER"}, {title: "DEFAULT"}, {title: "PREFIXES"}, {title: "NODES", right: true},
				{title: "MODE", wide: true}, {title: "PACKED BELOW", wide: true, right: true}, {title: "DELAY", wide: true, right: true},
				{title: "GROUP", wide: true, right: true},
				{title: "DEAD AT MOST", wide: true, right: true}, {title: "WAITS", wide: true}, {title: "REPAIR ON READ", wide: true},
				{title: "HOT KEYS", wide: true}, {title: "KEEPS", wide: true}, {title: "EXPIRES", wide: true},
			}}
			for _, class := range classes {
				prefixes := make([]string, len(class.Prefixes))
				for i, prefix := range class.Prefixes {
					prefixes[i] = strconv.Quote(prefix)
				}
				packed := "never"
				if class.PackBelow > 0 {
					packed = words.Bytes(class.PackBelow)
				}
				l.names = append(l.names, class.Name)
				l.rows = append(l.rows, []string{
					class.Name, class.Ladder, class.Default, strings.Join(prefixes, " "), strconv.Itoa(class.Nodes),
					class.Mode, packed, class.PackDelay, words.Bytes(class.GroupBytes), deadAtMost(class.DeadAtMost),
					cmp.Or(string(class.PackMode), unsaid), cmp.Or(string(class.RepairOnRead), unsaid), hotKeys(class.HotKeys),
					versions(class.KeepVersions), cmp.Or(class.ExpireAfter, "never"),
				})
			}
			return s.show(format, l)
		})
	}
	return command
}

// versions says which versions of an object are kept.
func versions(keep api.KeepVersions) string {
	if keep == 0 {
		return "none"
	}
	return keep.String()
}

// hotKeys says where keys lie that are read much, and how much that is.
func hotKeys(keys *api.HotKeysSpec) string {
	if keys == nil {
		return unsaid
	}
	return fmt.Sprintf("%s from %d reads", keys.Scheme, keys.Reads)
}

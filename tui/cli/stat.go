package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
)

func statCommand(s *session) *cobra.Command {
	var deep bool
	command := &cobra.Command{
		Use: "stat KEY", Short: "Show where an object lies and whether each block is there",
		Args: cobra.ExactArgs(1),
	}
	command.Flags().BoolVar(&deep, "deep", false, "have every block read and checked whole; a corrupt one counts as missing")
	format := outputFlag(command, "table", "wide", "json", "yaml")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		return s.withClient(func(c *client.Client) error {
			look := c.Stat
			if deep {
				look = c.StatDeep
			}
			stat, err := look(command.Context(), arguments[0])
			if err != nil {
				return err
			}
			if format.chosen == "json" || format.chosen == "yaml" {
				return s.show(format, listing{value: stat})
			}
			return program.WriteLines(s.Out, statLines(stat, format.chosen == "wide"))
		})
	}
	return command
}

// statLines shows an object and a table of its groups; wide adds every slot.
func statLines(stat api.Stat, wide bool) []string {
	lines := []string{
		"key       " + stat.Key,
		"class     " + stat.Class,
		"scheme    " + stat.Scheme,
		fmt.Sprintf("size      %s (%s bytes)", words.Bytes(stat.Size), words.Number(stat.Size)),
		"revision  " + stat.Revision.String(),
		"modified  " + stat.Modified.Format("2006-01-02 15:04:05 MST"),
	}
	if !stat.Expires.IsZero() {
		lines = append(lines, "expires   "+stat.Expires.Format("2006-01-02 15:04:05 MST"))
	}
	for _, name := range slices.Sorted(maps.Keys(stat.Metadata)) {
		lines = append(lines, fmt.Sprintf("metadata  %s=%s", api.PrintableKey(name), api.PrintableKey(stat.Metadata[name])))
	}
	for _, revision := range stat.Earlier {
		lines = append(lines, "kept      revision "+revision.String())
	}
	var groups [][]string
	for _, g := range stat.Groups {
		kind := "own"
		if g.Packed {
			kind = "shared by " + strconv.FormatInt(g.Live, 10)
		}
		groups = append(groups, []string{
			g.ID.String(), g.Scheme, fmt.Sprintf("%dx%d of %s", g.Rows, g.Columns, words.Bytes(int64(g.CellBytes))), kind,
			words.Bytes(g.Bytes), health(g), g.Ladder, g.Mode,
		})
	}
	if len(groups) > 0 {
		lines = append(lines, "")
		lines = append(lines, tableLines([]column{
			{title: "GROUP"}, {title: "SCHEME"}, {title: "CELLS"}, {title: "KIND"}, {title: "HERE", right: true}, {title: "BLOCKS"},
			{title: "LADDER", wide: true}, {title: "MODE", wide: true},
		}, groups, wide)...)
	}
	if !wide {
		return lines
	}
	for _, g := range stat.Groups {
		var slots [][]string
		for _, slot := range g.Slots {
			slots = append(slots, []string{strconv.Itoa(slot.Slot), slot.Role, string(slot.Node), strconv.Itoa(slot.Blocks), slot.State})
		}
		lines = append(lines, "", "group "+g.ID.String()+", epoch "+g.Epoch.String())
		lines = append(lines, tableLines([]column{{title: "SLOT", right: true}, {title: "ROLE"}, {title: "NODE"}, {title: "ITEMS", right: true}, {title: "STATE"}}, slots, true)...)
	}
	return lines
}

// health sums up the slots of a group that have blocks: "14 ok", or which are not.
func health(g api.GroupStat) string {
	ok := 0
	var wrong []string
	for _, slot := range g.Slots {
		switch {
		case slot.Blocks == 0: // nothing was put into the column
		case slot.State == "ok":
			ok++
		default:
			wrong = append(wrong, fmt.Sprintf("%d on %s %s", slot.Slot, slot.Node, slot.State))
		}
	}
	text := fmt.Sprintf("%d ok", ok)
	if len(wrong) > 0 {
		text += ", " + strings.Join(wrong, ", ")
	}
	return text
}

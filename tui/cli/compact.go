package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/progress"
)

func compactCommand(s *session) *cobra.Command {
	return program.Family(&cobra.Command{
		Use: "compact", Short: "Give back what deleted and overwritten small objects leave behind",
		Long: "Give back what deleted and overwritten small objects leave behind. Small objects share groups, and a group is freed once\n" +
			"nothing lives in it; compaction moves what lives in the emptiest groups into new ones. A cluster does so by itself where more\n" +
			"is dead than a class allows (deadAtMostPercent); these commands begin a pass now, show how far it is, and stop it for a while.",
	},
		compactStart(s),
		asking(s, "status", "Show how far the compaction is, and how much is dead", (*client.Client).Compaction, s.showCompaction),
		asking(s, "pause", "Stop the compaction until resumed; none begins by itself meanwhile",
			(*client.Client).PauseCompaction, s.showCompaction),
		asking(s, "resume", "Go on with a paused compaction", (*client.Client).ResumeCompaction, s.showCompaction),
	)
}

func compactStart(s *session) *cobra.Command {
	var rate string
	var request api.CompactionRequest
	var wait bool
	command := &cobra.Command{
		Use: "start", Short: "Begin a pass over all groups of small objects now",
		Long: "Begin a pass over all groups of small objects now, in place of one under way. It looks at how much is dead in each, and moves\n" +
			"what lives in the emptiest into new groups, until no more is dead than the class allows.",
		Example: "  restripe compact start --rate 50MiB/s --wait",
		Args:    cobra.NoArgs,
	}
	format := outputFlag(command, "table", "json", "yaml")
	flags := command.Flags()
	flags.StringVar(&rate, "rate", "", "limit on bytes of objects moved, such as 50MiB/s (default: none)")
	flags.BoolVar(&request.Everything, "everything", false, "compact every group that gains by it, whatever the classes allow to be dead")
	flags.BoolVar(&wait, "wait", false, "stay and show progress until it ends; exit code 1 if a group could not be compacted")
	command.RunE = func(command *cobra.Command, _ []string) error {
		bytesPerSecond, err := parseRate(rate)
		if err != nil {
			return program.Misuse(command, "--rate: %w", err)
		}
		request.BytesPerSecond = bytesPerSecond
		return s.withClient(func(c *client.Client) error {
			compaction, err := c.StartCompaction(command.Context(), request)
			if err != nil {
				return fmt.Errorf("starting a compaction: %w", err)
			}
			if wait {
				if compaction, err = s.followCompaction(command.Context(), c, compaction); err != nil {
					return err
				}
			}
			if err := s.showCompaction(format, compaction); err != nil {
				return err
			}
			switch {
			case !wait:
				return nil
			case compaction.State == api.CompactionPaused && compaction.Finished == nil:
				return fmt.Errorf("the compaction was not finished, it is %s; go on with `restripe compact resume`", compaction.State)
			case compaction.Failed > 0:
				return fmt.Errorf("%s could not be compacted: %s", words.Count(compaction.Failed, "group"), compaction.Error)
			case compaction.Error != "":
				return fmt.Errorf("the compaction failed: %s", compaction.Error)
			}
			return nil
		})
	}
	return command
}

// compactPoll is how often the progress of a compaction is asked for.
const compactPoll = 500 * time.Millisecond

// followCompaction shows the progress of a pass until it ends or is stopped, and returns it as it was seen last. Where another
// begins by itself, the one before has ended: its last figures may then be of shortly before its end.
func (s *session) followCompaction(ctx context.Context, c *client.Client, compaction api.Compaction) (api.Compaction, error) {
	m := progress.New(s.Messages)
	defer m.Clear()
	err := every(ctx, compactPoll, func() (ended bool, err error) {
		now, err := c.Compaction(ctx)
		switch {
		case err != nil:
			return false, err
		case now.Pass == compaction.Pass+1 && now.Background:
			m.Clear()
			_, err := fmt.Fprintf(s.Messages, "pass %d has ended and pass %d has begun by itself; this was seen of the first:\n",
				compaction.Pass, now.Pass)
			return true, err
		case now.Pass != compaction.Pass:
			return false, fmt.Errorf("pass %d of the compaction was begun in place of pass %d", now.Pass, compaction.Pass)
		}
		compaction = now
		if compaction.State != api.CompactionRunning {
			return true, nil
		}
		m.Show(time.Now(), func() string { return compactionProgress(&compaction) })
		return false, nil
	})
	return compaction, err
}

// compactionProgress says in one line how far a pass under way is.
func compactionProgress(compaction *api.Compaction) string {
	if compaction.GroupsTotal == 0 {
		return "compact: looking at how much is dead in each group"
	}
	return fmt.Sprintf("compact %s %5s  %s of %s groups  %s freed  %s left", progress.Bar(compaction.BytesDone, compaction.BytesTotal),
		words.Share(compaction.BytesDone, compaction.BytesTotal), words.Number(compaction.GroupsDone), words.Number(compaction.GroupsTotal),
		words.Bytes(compaction.BytesFreed), words.Left(compaction.ETASeconds))
}

func (s *session) showCompaction(format *formatValue, compaction api.Compaction) error {
	if format.chosen != "table" {
		return s.show(format, listing{value: compaction})
	}
	return program.WriteLines(s.Out, compactionLines(&compaction, time.Now()))
}

func compactionLines(compaction *api.Compaction, now time.Time) []string {
	if compaction.Pass == 0 {
		return []string{"state       " + string(compaction.State), "Nothing was compacted yet. Begin with `restripe compact start`."}
	}
	began := "begun on request"
	if compaction.Background {
		began = "begun by itself"
	}
	if compaction.Everything {
		began += ", over everything"
	}
	lines := []string{
		fmt.Sprintf("pass        %d, %s", compaction.Pass, began),
		"state       " + string(compaction.State),
		fmt.Sprintf("done        %s %s of %s out of %s of %s groups", progress.Bar(compaction.BytesDone, compaction.BytesTotal),
			words.Bytes(compaction.BytesDone), words.Bytes(compaction.BytesTotal),
			words.Number(compaction.GroupsDone), words.Number(compaction.GroupsTotal)),
		"moved       " + words.Moved(compaction.ObjectsMoved, compaction.ObjectsSpliced),
		"freed       " + words.Bytes(compaction.BytesFreed),
		"time        " + words.Span(words.Seconds(compaction.ElapsedSeconds)),
	}
	if compaction.State == api.CompactionRunning {
		lines = append(lines, "left        "+words.Left(compaction.ETASeconds))
	}
	if compaction.BytesPerSecond > 0 {
		lines = append(lines, "limit       "+words.Limit(compaction.BytesPerSecond))
	}
	if compaction.Failed > 0 {
		lines = append(lines, "failed      "+words.Count(compaction.Failed, "group")+" of which something could not be moved")
	}
	if compaction.Error != "" {
		lines = append(lines, "error       "+compaction.Error)
	}
	if compaction.Looked == nil {
		return lines
	}
	lines = append(lines, "looked      "+words.About(now.Sub(*compaction.Looked))+" ago")
	if len(compaction.Classes) == 0 {
		return append(lines, "No class has groups of small objects.")
	}
	return append(append(lines, ""), tableLines(deadColumns, deadRows(compaction.Classes), false)...)
}

var deadColumns = []column{
	{title: "CLASS"}, {title: "GROUPS", right: true}, {title: "BYTES", right: true}, {title: "DEAD", right: true},
	{title: "OF LIVE", right: true}, {title: "AT MOST", right: true},
}

func deadRows(classes []api.CompactionClass) [][]string {
	var rows [][]string
	for i := range classes {
		class := &classes[i]
		rows = append(rows, []string{
			class.Name, words.Number(class.Groups), words.Bytes(class.Bytes), words.Bytes(class.Dead),
			words.Share(class.Dead, class.Bytes-class.Dead), deadAtMost(class.DeadAtMostPercent),
		})
	}
	return rows
}

// deadAtMost shows how much a class allows to be dead, in percent of what lives; 0 is of a class that is gone, and of gateways of
// earlier releases.
func deadAtMost(percent int) string {
	switch {
	case percent == 0:
		return "-"
	case percent >= api.NeverCompact:
		return "any"
	}
	return strconv.Itoa(percent) + " %"
}

package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/progress"
)

func scrubCommand(s *session) *cobra.Command {
	return program.Family(&cobra.Command{
		Use: "scrub", Short: "Look for blocks that have gone wrong, and rebuild them",
		Long: "Look for blocks that have gone wrong, and rebuild them. A cluster scrubs itself once a week; these commands begin a cycle now,\n" +
			"show how far it is and what was found, and stop it for a while.",
	},
		scrubStart(s), scrubReport(s),
		asking(s, "status", "Show how far the scrub is", (*client.Client).Scrub, s.showScrub),
		asking(s, "pause", "Stop the scrub until resumed; none begins by itself meanwhile", (*client.Client).PauseScrub, s.showScrub),
		asking(s, "resume", "Go on with a paused scrub", (*client.Client).ResumeScrub, s.showScrub),
	)
}

func scrubStart(s *session) *cobra.Command {
	var depth, rate string
	var wait bool
	command := &cobra.Command{
		Use: "start", Short: "Begin a cycle over all groups now",
		Long: "Begin a cycle over all groups now, in place of one under way. An audit has every node read and check its blocks and compares\n" +
			"their fingerprints with the parity equations: a few dozen bytes per block on the network. A shallow scrub looks at headers only.",
		Example: "  restripe scrub start --rate 200MiB/s --wait",
		Args:    cobra.NoArgs,
	}
	format := outputFlag(command, "table", "json", "yaml")
	flags := command.Flags()
	flags.StringVar(&depth, "depth", string(api.ScrubAudit), "how closely to look: audit or shallow")
	flags.StringVar(&rate, "rate", "", "limit on bytes read at all nodes together, such as 50MiB/s (default: none)")
	flags.BoolVar(&wait, "wait", false, "stay and show progress until it ends; exit code 1 if something was found that could not be repaired")
	command.RunE = func(command *cobra.Command, _ []string) error {
		bytesPerSecond, err := parseRate(rate)
		if err != nil {
			return program.Misuse(command, "--rate: %w", err)
		}
		request := api.ScrubRequest{Depth: api.ScrubDepth(depth), BytesPerSecond: bytesPerSecond}
		if request.Depth != api.ScrubAudit && request.Depth != api.ScrubShallow {
			return program.Misuse(command, "--depth: want %s or %s", api.ScrubAudit, api.ScrubShallow)
		}
		return s.withClient(func(c *client.Client) error {
			scrub, err := c.StartScrub(command.Context(), request)
			if err != nil {
				return fmt.Errorf("starting a scrub: %w", err)
			}
			if wait {
				if scrub, err = s.followScrub(command.Context(), c, scrub.Cycle); err != nil {
					return err
				}
			}
			if err := s.showScrub(format, scrub); err != nil {
				return err
			}
			left := scrub.Findings - scrub.Repaired
			switch {
			case !wait:
				return nil
			case scrub.State != api.ScrubDone:
				return fmt.Errorf("the scrub was not finished, it is %s; go on with `restripe scrub resume`", scrub.State)
			case left > 0:
				return fmt.Errorf("%d findings could not be repaired; see `restripe scrub report`", left)
			}
			return nil
		})
	}
	return command
}

// scrubPoll is how often the progress of a scrub is asked for.
const scrubPoll = 500 * time.Millisecond

// followScrub shows the progress of a cycle until it ends or is stopped.
func (s *session) followScrub(ctx context.Context, c *client.Client, cycle int64) (api.Scrub, error) {
	m := progress.New(s.Messages)
	defer m.Clear()
	var scrub api.Scrub
	err := every(ctx, scrubPoll, func() (ended bool, err error) {
		if scrub, err = c.Scrub(ctx); err != nil {
			return false, err
		}
		if scrub.Cycle != cycle {
			return false, fmt.Errorf("cycle %d of the scrub was begun in place of cycle %d", scrub.Cycle, cycle)
		}
		if scrub.State != api.ScrubRunning {
			return true, nil
		}
		m.Show(time.Now(), func() string {
			return fmt.Sprintf("scrub %s %5s  %s of %s groups  %s findings  %s left", progress.Bar(scrub.BytesDone, scrub.BytesTotal), words.Share(scrub.BytesDone, scrub.BytesTotal),
				words.Number(scrub.GroupsDone), words.Number(scrub.GroupsTotal), words.Number(scrub.Findings), words.Left(scrub.ETASeconds))
		})
		return false, nil
	})
	return scrub, err
}

func (s *session) showScrub(format *formatValue, scrub api.Scrub) error {
	if format.chosen != "table" {
		return s.show(format, listing{value: scrub})
	}
	return program.WriteLines(s.Out, scrubLines(scrub))
}

func scrubLines(scrub api.Scrub) []string {
	if scrub.Cycle == 0 {
		return []string{"state       " + string(scrub.State), "Nothing was scrubbed yet. Begin with `restripe scrub start`."}
	}
	began := "on request"
	if scrub.Background {
		began = "by itself"
	}
	lines := []string{
		fmt.Sprintf("cycle       %d, %s, begun %s", scrub.Cycle, scrub.Depth, began),
		"state       " + string(scrub.State),
		fmt.Sprintf("done        %s %s of %s in %s of %s groups", progress.Bar(scrub.BytesDone, scrub.BytesTotal), words.Bytes(scrub.BytesDone), words.Bytes(scrub.BytesTotal),
			words.Number(scrub.GroupsDone), words.Number(scrub.GroupsTotal)),
		"network     " + words.Bytes(scrub.NetworkBytes),
		fmt.Sprintf("findings    %s, %s repaired", words.Number(scrub.Findings), words.Number(scrub.Repaired)),
		"time        " + words.Span(words.Seconds(scrub.ElapsedSeconds)),
	}
	if scrub.State == api.ScrubRunning {
		lines = append(lines, "left        "+words.Left(scrub.ETASeconds))
	}
	if scrub.BytesPerSecond > 0 {
		lines = append(lines, "limit       "+words.Limit(scrub.BytesPerSecond))
	}
	if scrub.GroupsIncomplete > 0 {
		lines = append(lines, "incomplete  "+words.Count(scrub.GroupsIncomplete, "group")+" of which a node did not answer")
	}
	if scrub.Error != "" {
		lines = append(lines, "error       "+scrub.Error)
	}
	return lines
}

func scrubReport(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "report", Short: "List what scrubs found, newest first",
		Long: "List what scrubs found, newest first: which block, whose bytes, what was wrong and what was done about it.",
		Args: cobra.NoArgs,
	}
	format := outputFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		return s.withClient(func(c *client.Client) error {
			findings, err := c.ScrubFindings(command.Context())
			if err != nil {
				return err
			}
			return s.show(format, findingListing(findings, time.Now()))
		})
	}
	return command
}

func findingListing(findings []api.ScrubFinding, now time.Time) listing {
	l := listing{value: findings, empty: "Scrubs found nothing.", columns: []column{
		{title: "AGE", right: true}, {title: "KIND"}, {title: "GROUP"}, {title: "SLOT", right: true}, {title: "UNIT", right: true}, {title: "NODE"}, {title: "OBJECTS"}, {title: "REPAIRED"},
		{title: "FINDING", wide: true}, {title: "OUTCOME", wide: true},
	}}
	number := func(n int) string {
		if n < 0 {
			return "-"
		}
		return strconv.Itoa(n)
	}
	for i := range findings {
		f := &findings[i]
		objects := strings.Join(f.Objects, " ")
		if f.More > 0 {
			objects += fmt.Sprintf(" and %d more", f.More)
		}
		repaired := "no"
		if f.Repaired {
			repaired = "yes"
		}
		l.names = append(l.names, f.Group.String())
		l.rows = append(l.rows, []string{words.About(now.Sub(f.Found)), f.Kind, f.Group.String(), number(f.Slot), number(f.Unit), string(f.Node), objects, repaired, f.Text, f.Outcome})
	}
	return l
}

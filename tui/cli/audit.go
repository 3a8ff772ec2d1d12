package cli

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/audit"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/tui/cli/program"
)

func auditCommand(s *session) *cobra.Command {
	return program.Family(&cobra.Command{
		Use: "audit", Short: "See who changed what through a gateway, and check that nobody changed the record of it",
		Long: "See who asked a gateway to change the cluster, and check that nobody changed the record of it. A gateway keeps an audit log\n" +
			"where it has --audit; that of a console is shown by the console, and checked by `restripe audit verify` as well.",
	}, auditList(s), auditVerify(s))
}

func auditList(s *session) *cobra.Command {
	var filter api.AuditFilter
	var since, until string
	var before int64
	var limit int
	command := &cobra.Command{
		Use: "list", Short: "List changes of the cluster, the newest first",
		Long: "List changes of the cluster that this gateway was asked for, the newest first, those that were refused too. It takes the verb\n" +
			"audit or get.",
		Example: "  restripe audit list --user ada --since 24h\n  restripe audit list --object nodes/ -o json",
		Args:    cobra.NoArgs,
	}
	format := outputFlag(command)
	flags := command.Flags()
	flags.StringVar(&filter.User, "user", "", "only what this user asked for")
	flags.StringVar(&filter.Object, "object", "", "only changes of what has this in its name, such as nodes/n1")
	flags.StringVar(&filter.Verb, "verb", "", "only what takes this verb")
	flags.StringVar(&since, "since", "", "only what began then or later: a time such as 2027-01-31T12:00:00Z, or for how long, such as 24h")
	flags.StringVar(&until, "until", "", "only what began before then")
	flags.Int64Var(&before, "before", 0, "only what is older than the action of this number")
	flags.IntVar(&limit, "limit", 100, "how many at most, 1 to 1000")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if limit < 1 || limit > 1000 {
			return program.Misuse(command, "--limit %d: want 1 to 1000", limit)
		}
		for _, one := range []struct {
			flag, text string
			into       *time.Time
		}{{"since", since, &filter.Since}, {"until", until, &filter.Until}} {
			var err error
			if *one.into, err = timeBefore(time.Now(), one.text); err != nil {
				return program.Misuse(command, "--%s: %w", one.flag, err)
			}
		}
		return s.withClient(func(c *client.Client) error {
			page, err := c.Audit(command.Context(), filter, before, limit)
			if err != nil {
				return fmt.Errorf("reading the audit log: %w", err)
			}
			if err := s.show(format, auditListing(&page)); err != nil {
				return err
			}
			if page.Next == 0 || format.chosen == "json" || format.chosen == "yaml" {
				return nil
			}
			return program.WriteLines(s.Messages, []string{fmt.Sprintf("there are older ones: --before %d", page.Next)})
		})
	}
	return command
}

// timeBefore reads a time, or how long it is before now.
func timeBefore(now time.Time, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("%q: want a time such as 2027-01-31T12:00:00Z, or for how long, such as 24h", text)
	}
	return at, nil
}

func auditListing(page *api.AuditPage) listing {
	l := listing{
		value: page, empty: "nothing was recorded that matches",
		columns: []column{
			{title: "NUMBER", right: true}, {title: "TIME"}, {title: "USER"}, {title: "KNOWN BY", wide: true}, {title: "FROM", wide: true},
			{title: "VERB", wide: true}, {title: "ACTION"}, {title: "OBJECT"}, {title: "RESULT"}, {title: "ASKED", wide: true}, {title: "WHY"},
		},
	}
	for i := range page.Actions {
		a := &page.Actions[i]
		number := strconv.FormatInt(a.Sequence, 10)
		l.names = append(l.names, number)
		l.rows = append(l.rows, []string{
			number, a.Begun.UTC().Format(time.RFC3339), a.User, a.Method, a.From, a.Verb, a.Action, a.Object, a.Result, string(a.Request), a.Error,
		})
	}
	return l
}

func auditVerify(s *session) *cobra.Command {
	var earlier api.AuditHead
	command := &cobra.Command{
		Use: "verify [DIRECTORY|FILE]", Short: "Check that an audit log is whole and as it was written",
		Long: "Check that every record of an audit log is there and as it was written: of the gateway's, or of one in a directory, of a\n" +
			"gateway or a console, running or not, or of one file of it. Exit code 1 if it is not.\n\n" +
			"Who can write all files can forge them all. Keep the sequence and hash that are printed elsewhere, and give them to a later\n" +
			"verify, which then tells whether the log goes on from there.",
		Example: "  restripe audit verify\n  restripe audit verify /var/lib/restripe/audit --sequence 1200 --hash 5d41402a...",
		Args:    cobra.MaximumNArgs(1),
	}
	format := outputFlag(command, "table", "json", "yaml")
	flags := command.Flags()
	flags.Int64Var(&earlier.Sequence, "sequence", 0, "number of the newest record of an earlier verify")
	flags.StringVar(&earlier.Hash, "hash", "", "hash of that record")
	command.MarkFlagsRequiredTogether("sequence", "hash")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if earlier.Sequence < 0 {
			return program.Misuse(command, "--sequence %d: want a number above 0", earlier.Sequence)
		}
		where, report := "the gateway", api.AuditReport{}
		var err error
		if len(arguments) == 1 {
			where = arguments[0]
			report, err = verifyAudit(where, earlier)
		} else {
			err = s.withClient(func(c *client.Client) error {
				report, err = c.VerifyAudit(command.Context(), earlier)
				return err
			})
		}
		if err != nil {
			return err
		}
		l := listing{value: report}
		if format.chosen == "table" && report.Intact {
			return program.WriteLines(s.Out, []string{
				fmt.Sprintf("the audit log of %s is as it was written: records %d to %d", where, report.First, report.Head.Sequence),
				fmt.Sprintf("keep elsewhere: --sequence %d --hash %s", report.Head.Sequence, report.Head.Hash),
			})
		}
		if format.chosen != "table" {
			if err := s.show(format, l); err != nil || report.Intact {
				return err
			}
		}
		return fmt.Errorf("the audit log of %s is not as it was written: %s; keep it for whoever looks into it, and have whatever writes it "+
			"begin a new one in another directory", where, report.Problem)
	}
	return command
}

// verifyAudit verifies the audit log in a directory, or a file of it.
func verifyAudit(path string, earlier api.AuditHead) (api.AuditReport, error) {
	found, err := audit.VerifyPath(path, audit.Head{Sequence: earlier.Sequence, Hash: earlier.Hash})
	if errors.Is(err, audit.ErrNone) {
		return api.AuditReport{}, fmt.Errorf("%w; name the directory that a gateway or a console has as --audit", err)
	}
	if err != nil {
		return api.AuditReport{}, err
	}
	return api.AuditReport{
		Intact: found.Problem == "", Problem: found.Problem, First: found.First, Records: found.Records,
		Head: api.AuditHead{Sequence: found.Head.Sequence, Hash: found.Head.Hash},
	}, nil
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/open"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/rebuild"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/daemon"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/progress"
)

func catalogCommand(s *session) *cobra.Command {
	return program.Family(&cobra.Command{
		Use: "catalog", Short: "Back the catalog up, move it, see which timeline of it counts, rebuild a lost one",
	}, catalogBackup(s), catalogRestore(s), catalogCopy(s), catalogLineage(s), catalogClaim(s), catalogAccept(s), catalogUpgrade(s), catalogRebuild(s))
}

// rebuildFlags are the flags of `restripe catalog rebuild`.
type rebuildFlags struct {
	catalog, nodes, report string
	dryRun, missing, into  bool
	tls                    *string
}

func catalogRebuild(s *session) *cobra.Command {
	var f rebuildFlags
	command := &cobra.Command{
		Use: "rebuild --catalog ADDRESS --nodes FILE", Short: "Make a new catalog from what the stores hold",
		Long: "Make a new catalog from what the stores hold: names, sizes and places of objects are in the blocks themselves. The agents\n" +
			"must run, and no gateway may. A catalog that exists is never written to, and no block is deleted. What blocks cannot tell,\n" +
			"such as deletes of the last minutes, is in the report. Start a gateway with the new catalog and its class file afterwards,\n" +
			"look at the objects, and then run `restripe catalog accept`: until then blocks that nobody names are kept.\n\n" +
			"With --into a catalog that was put back takes up what the stores have and it lacks: objects, versions and places that\n" +
			"none of its gateways ever wrote. Nothing is removed from it, the later version of an object stays, and what it has seen\n" +
			"to be deleted does not come back. It is claimed by that, as `restripe catalog claim` does.",
		Example: "  restripe catalog rebuild --catalog sqlite:/var/lib/restripe/new.db --nodes nodes.yaml --dry-run\n" +
			"  restripe catalog rebuild --catalog sqlite:/var/lib/restripe/catalog.db --nodes nodes.yaml --into",
		Args: cobra.NoArgs,
	}
	format := outputFlag(command, "table", "json", "yaml")
	flags := command.Flags()
	flags.StringVar(&f.catalog, "catalog", "", "catalog to make: "+open.Addresses+", without records, "+
		"or @FILE with one of them, or what "+daemon.CatalogVariable+" says (required but for --dry-run)")
	flags.StringVar(&f.nodes, "nodes", "", "YAML file of the agents, as the gateway has it (required)")
	flags.StringVar(&f.report, "report", "", "write the whole report as JSON into this file too")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only report")
	flags.BoolVar(&f.into, "into", false, "bring what it lacks into a catalog that exists, instead of making one")
	f.tls = daemon.TLSFlag(command)
	flags.BoolVar(&f.missing, "missing", false, "go on without nodes that do not answer: their blocks count as lost")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if f.nodes == "" {
			return program.Misuse(command, "say which agents to ask: --nodes FILE")
		}
		var err error
		if f.catalog, err = daemon.SecretAddress(command, "catalog", f.catalog, daemon.CatalogVariable); err != nil {
			return err
		}
		if f.into && f.catalog == "" {
			return program.Misuse(command, "say which catalog lacks something: --catalog sqlite:FILE")
		}
		if f.catalog == "" && !f.dryRun {
			return program.Misuse(command, "say which catalog to make: --catalog sqlite:FILE, or --dry-run to make none")
		}
		report, err := s.rebuild(command.Context(), f)
		if err != nil {
			return fmt.Errorf("rebuilding the catalog: %w", err)
		}
		if format.chosen != "table" {
			return s.show(format, listing{value: report})
		}
		return program.WriteLines(s.Out, rebuildLines(report, f))
	}
	return command
}

func (s *session) rebuild(ctx context.Context, f rebuildFlags) (report *rebuild.Report, err error) {
	nodes, err := member.LoadNodes(f.nodes)
	if err != nil {
		return nil, err
	}
	var engine kv.Engine
	if !f.dryRun || f.into {
		if engine, err = openToFill(ctx, f); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, engine.Close()) }()
	}
	m := progress.New(s.Messages)
	defer m.Clear()
	show := func(what string, done, total int) {
		m.Show(time.Now(), func() string {
			return fmt.Sprintf("%s of %s %s", words.Number(int64(done)), words.Number(int64(total)), what)
		})
	}
	own, err := daemon.Certificates(*f.tls, pki.RoleAdmin, pki.RoleGateway)
	if err != nil {
		return nil, err
	}
	contents, report, err := rebuild.Run(ctx, rebuild.Options{
		Nodes: nodes, Missing: f.missing, Modified: time.Now(), Progress: show, Certificates: own,
	})
	if err != nil {
		return nil, err
	}
	written := func(done, total int) { show("records written", done, total) }
	if f.into {
		if report.Merged, err = catalog.Merge(ctx, engine, contents, f.dryRun, written); err != nil {
			return nil, err
		}
	}
	if f.report != "" {
		text, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encoding the report: %w", err)
		}
		if err := os.WriteFile(f.report, append(text, '\n'), 0o644); err != nil {
			return nil, fmt.Errorf("writing the report: %w", err)
		}
	}
	if f.dryRun || f.into {
		return report, nil
	}
	return report, catalog.Restore(ctx, engine, contents, written)
}

// openToFill opens the catalog that a rebuild makes, which must be empty, or brings what it lacks into.
func openToFill(ctx context.Context, f rebuildFlags) (kv.Engine, error) {
	if path, isFile := strings.CutPrefix(f.catalog, "sqlite:"); isFile && f.into {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("opening the catalog: %w; without --into a new one is made", err)
		}
	}
	engine, err := open.Engine(ctx, f.catalog)
	if err != nil {
		return nil, fmt.Errorf("opening the catalog: %w", err)
	}
	if f.into {
		return engine, nil
	}
	if err := catalog.CheckEmpty(ctx, engine); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return engine, nil
}

// shownProblems is how many problems the summary lists; the report has all.
const shownProblems = 40

func rebuildLines(report *rebuild.Report, f rebuildFlags) []string {
	lines := []string{
		"cluster   " + report.Cluster,
		fmt.Sprintf("objects   %s, %s", words.Number(int64(report.Objects)), words.Bytes(report.Bytes)),
		fmt.Sprintf("groups    %s", words.Number(int64(report.Groups))),
		fmt.Sprintf("blocks    %s found, %s of them named by no record", words.Number(int64(report.Blocks)), words.Number(int64(report.Unnamed))),
	}
	for _, node := range report.Nodes {
		text := fmt.Sprintf("node      %s: %s", node.ID, words.Count(int64(node.Blocks), "block"))
		if node.Problem != "" {
			text = fmt.Sprintf("node      %s: does not answer", node.ID)
		}
		lines = append(lines, text)
	}
	if len(report.Problems) > 0 {
		lines = append(lines, "", words.Count(int64(len(report.Problems)), "problem")+":")
		for _, p := range report.Problems[:min(shownProblems, len(report.Problems))] {
			lines = append(lines, "  "+problemText(p))
		}
		if more := len(report.Problems) - shownProblems; more > 0 {
			lines = append(lines, fmt.Sprintf("  and %d more, which -o json and --report show", more))
		}
	}
	lines = append(lines, "", "What no block can tell:")
	for _, text := range report.Unknowable {
		lines = append(lines, "  "+text)
	}
	if report.Merged != nil {
		lines = append(lines, "")
		lines = append(lines, mergedLines(report.Merged)...)
	}
	if f.dryRun {
		return append(lines, "", "Nothing was written.")
	}
	if f.into {
		return append(lines, "", "The catalog is claimed. Start a gateway with it, look at the objects, and run `restripe catalog accept`.")
	}
	return append(lines, "",
		"The catalog is made. Start a gateway with it and with the class file, look at the objects, and run `restripe catalog accept`.")
}

func mergedLines(merged *catalog.Merged) []string {
	lines := []string{
		fmt.Sprintf("lacking   %s, newer versions of %s, in %s", words.Count(int64(merged.Objects), "object"),
			words.Number(int64(merged.Newer)), words.Count(int64(merged.Groups), "group")),
	}
	list := func(what string, keys []string) {
		for _, key := range keys[:min(shownProblems, len(keys))] {
			lines = append(lines, fmt.Sprintf("  %s: %q", what, key))
		}
		if more := len(keys) - shownProblems; more > 0 {
			lines = append(lines, fmt.Sprintf("  and %d more", more))
		}
	}
	list("its version in the catalog is later and stays", merged.Kept)
	list("in the catalog and in no store, as it was deleted or replaced since, or is lost", merged.Missing)
	return lines
}

func problemText(p rebuild.Problem) string {
	text := p.Kind
	if p.Key != "" {
		text += " object " + p.Key
	}
	if p.Group != nil {
		text += " group " + p.Group.String()
	}
	if p.Node != "" {
		text += " node " + string(p.Node)
	}
	return text + ": " + p.Text
}

func catalogAccept(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "accept", Short: "Say that a rebuilt or claimed catalog has all that is wanted",
		Long: "Say that a catalog that was rebuilt or claimed has all that is wanted: what other timelines wrote is given up, and blocks\n" +
			"that nobody names are deleted from then on, as ever.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return s.withClient(func(c *client.Client) error {
				if err := c.AcceptCatalog(command.Context()); err != nil {
					return err
				}
				return program.WriteLines(s.Out, []string{"the catalog is accepted"})
			})
		},
	}
}

func catalogUpgrade(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "upgrade", Short: "Let the catalog have what only the present release knows",
		Long: "Let a catalog that the release before has made have what only the present release knows, after all gateways and agents\n" +
			"were upgraded: it is refused, with their names, while others are at work. The release before does not open the catalog any\n" +
			"more then. Nothing else changes at once: what is stored stays as it is.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return s.withClient(func(c *client.Client) error {
				if err := c.UpgradeCatalog(command.Context()); err != nil {
					return err
				}
				return program.WriteLines(s.Out, []string{"the catalog is upgraded"})
			})
		},
	}
}

func catalogClaim(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "claim", Short: "Say that this catalog counts, after it was put back or copied",
		Long: "Say that the catalog of this gateway counts, and no other timeline of it. Its gateways start anew and work as ever from\n" +
			"then on, but that nothing from before is deleted until `restripe catalog accept`: so another timeline can be claimed\n" +
			"instead, and what this one lacks can be brought back.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return s.withClient(func(c *client.Client) error {
				claimed, err := c.ClaimCatalog(command.Context())
				if err != nil {
					return err
				}
				if err := awaitStart(command.Context(), c); err != nil {
					return err
				}
				lines := []string{"the catalog is claimed; nothing from before is deleted until `restripe catalog accept`"}
				for _, id := range claimed.Unheard {
					lines = append(lines, fmt.Sprintf("node %s did not answer: if it refuses the catalog when it is back, claim it again", id))
				}
				return program.WriteLines(s.Out, lines)
			})
		},
	}
}

// restartPatience is how long a gateway may take to start anew after a claim.
const restartPatience = time.Minute

// awaitStart waits until a gateway that was claimed answers as another start.
func awaitStart(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, restartPatience)
	defer cancel()
	for {
		lineage, err := c.Lineage(ctx)
		if err == nil && slices.ContainsFunc(lineage.Sessions, func(session api.Session) bool { return session.Present }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the catalog is claimed, and the gateway has not started anew within %s: see its log: %w", restartPatience, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func catalogLineage(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "lineage", Short: "Show which starts of gateways the catalog knows, and whether it is behind its nodes",
		Args: cobra.NoArgs,
	}
	format := outputFlag(command, "table", "json", "yaml")
	command.RunE = func(command *cobra.Command, _ []string) error {
		return s.withClient(func(c *client.Client) error {
			lineage, err := c.Lineage(command.Context())
			if err != nil {
				return err
			}
			if err := s.show(format, lineageListing(lineage)); err != nil || format.chosen != "table" {
				return err
			}
			return program.WriteLines(s.Out, lineageNotes(lineage))
		})
	}
	return command
}

func lineageListing(lineage api.Lineage) listing {
	l := listing{value: lineage, columns: []column{
		{title: "GATEWAY"}, {title: "START"}, {title: "UPDATES", right: true}, {title: "LAST STAMP", right: true}, {title: "PRESENT"},
	}}
	for _, session := range lineage.Sessions {
		present := "no"
		if session.Present {
			present = "yes"
		}
		l.names = append(l.names, session.Gateway)
		l.rows = append(l.rows, []string{
			session.Gateway, session.Start, words.Number(session.Updates), drawnText(session.Upto), present,
		})
	}
	return l
}

// firstClock is a number that stamps of releases that counted them have not reached, and those that are drawn from clocks are above.
const firstClock = 1e15 // microseconds: in 2001

// drawnText says when a stamp with this number was drawn, or the number of one that was counted.
func drawnText(number uint64) string {
	if number < firstClock {
		return words.Number(int64(number))
	}
	return time.UnixMicro(int64(number)).UTC().Format(time.DateTime)
}

// sizeText says how much a catalog holds, and how much its engine takes where that is known.
func sizeText(size api.CatalogSize) string {
	text := "The catalog has " + words.Bytes(size.Bytes)
	if size.Records >= 0 {
		text += fmt.Sprintf(" in about %s", words.Count(size.Records, "record"))
	}
	if size.Limit > 0 {
		text += fmt.Sprintf(", %.0f %% of the %s that its engine takes", 100*float64(size.Bytes)/float64(size.Limit), words.Bytes(size.Limit))
	}
	return text + "."
}

// lineageNotes say how large the catalog is, and what a person has to decide.
func lineageNotes(lineage api.Lineage) (notes []string) {
	notes = append(notes, "", fmt.Sprintf("The catalog is %s.", lineage.Address), sizeText(lineage.Size))
	if behind := lineage.Behind; behind != nil {
		found := fmt.Sprintf("holds %s that no session here has drawn", words.Count(int64(behind.Blocks), "block"))
		if behind.Refused != "" {
			found = behind.Refused
		}
		notes = append(notes, "", fmt.Sprintf("The catalog is behind its nodes: gateway %s found at %s that node %s %s.",
			behind.Gateway, behind.At.Format(time.DateTime), behind.Node, found),
			"Nothing is deleted. If this catalog counts, say `restripe catalog claim`; if not, start the gateways with the one that does.")
	}
	for _, refusal := range lineage.Refusals {
		notes = append(notes, fmt.Sprintf("Node %s: %s.", refusal.Node, refusal.Text))
	}
	if lineage.KeptBelow > 0 {
		notes = append(notes, "", "Nothing from before the catalog was rebuilt or claimed is deleted until `restripe catalog accept`.")
	}
	return notes
}

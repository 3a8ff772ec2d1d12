package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/adopt"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/store/ceph/pools"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/progress"
)

// carriage is what adoption and export share: the flags, the two ends and the job between them.
type carriage struct {
	session   *session
	command   *cobra.Command
	access    *pools.Access
	pool      adopt.PoolOptions
	keyPrefix string
	class     string
	prefix    string
	journal   string
	rate      string
	options   adopt.Options
	format    *formatValue
}

func (s *session) newCarriage(command *cobra.Command) *carriage {
	t := &carriage{session: s, command: command, access: accessFlags(command, administrator)}
	flags := command.Flags()
	flags.StringVar(&t.pool.Name, "pool", "", "the pool of Ceph (required)")
	flags.StringVar(&t.pool.Namespace, "namespace", "", "the namespace in the pool (default: the default one)")
	flags.StringVar(&t.journal, "journal", "", "file that remembers what is done (default: in the state directory, by the pool's name)")
	flags.IntVar(&t.options.Parallel, "jobs", defaultJobs, "objects under way at once")
	flags.StringVar(&t.rate, "throttle", "", "limit of what is read, such as 50MiB/s; verification reads as much again at the other end (default unlimited)")
	flags.BoolVar(&t.options.Overwrite, "overwrite", false, "replace objects that are in the way")
	t.format = outputFlag(command, "table", "json", "yaml")
	return t
}

func adoptCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "adopt --pool POOL --class CLASS", Short: "Bring the objects of a pool of Ceph under a class",
		Long: "Copy the objects of a replicated or erasure-coded pool into a class. Each is read back and compared by SHA-256 before it\n" +
			"counts, and one that changes meanwhile is copied again. A journal remembers what is verified: after Ctrl-C, a crash or a\n" +
			"reboot the same command goes on, and a later one copies only what was written since. With --trim a verified object is\n" +
			"deleted at the source, if it is still what was verified.\n\n" +
			"Pools of RBD, CephFS and RGW are refused. So are single objects with xattrs or an omap, unless told to leave them out.",
		Example: "  restripe adopt --pool archive --class cold --throttle 200MiB/s\n  restripe adopt --pool archive --class cold --prefix 2025/ --trim",
		Args:    cobra.NoArgs,
	}
	t := s.newCarriage(command)
	flags := command.Flags()
	flags.StringVar(&t.class, "class", "", "the class the objects will be in (required)")
	flags.StringVar(&t.prefix, "prefix", "", "only objects whose names begin so")
	flags.StringVar(&t.keyPrefix, "key-prefix", "", "goes before an object's name to make its key (default: the pool's name and a slash, and the namespace's)")
	flags.BoolVar(&t.options.Trim, "trim", false, "delete at the source what is verified")
	flags.BoolVar(&t.pool.DropXattrs, "drop-xattrs", false, "leave xattrs out instead of refusing the object")
	flags.BoolVar(&t.pool.DropOmap, "drop-omap", false, "leave omaps out instead of refusing the object")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if t.class == "" {
			return program.Misuse(command, "--class is required: `restripe classes` lists those there are")
		}
		if !command.Flags().Changed("key-prefix") {
			t.keyPrefix = t.pool.Name + "/"
			if t.pool.Namespace != "" {
				t.keyPrefix += t.pool.Namespace + "/"
			}
		}
		t.pool.Prefix = t.prefix
		return t.run(t.adopt)
	}
	return command
}

func exportCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "export --pool POOL {--class CLASS | --prefix PREFIX}", Short: "Copy objects into a plain pool of Ceph",
		Long: "Copy the objects of a class, or those whose keys begin with a prefix, into a pool: an object's name is its key. As with\n" +
			"`restripe adopt` each is read back and compared before it counts, and the same command goes on after an interruption.\n" +
			"Nothing is deleted: `restripe rm` does that, when you are sure.",
		Example: "  restripe export --class cold --pool archive2\n  restripe export --prefix archive/ --key-prefix archive/ --pool archive2",
		Args:    cobra.NoArgs,
	}
	t := s.newCarriage(command)
	flags := command.Flags()
	flags.StringVar(&t.class, "class", "", "only objects of this class")
	flags.StringVar(&t.prefix, "prefix", "", "only objects whose keys begin so")
	flags.StringVar(&t.keyPrefix, "key-prefix", "", "only objects whose keys begin so, and their names do without it")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if t.class == "" && t.prefix == "" && t.keyPrefix == "" {
			return program.Misuse(command, "say which objects: --class or --prefix")
		}
		rest, within := strings.CutPrefix(t.prefix, t.keyPrefix)
		if t.prefix != "" && !within {
			return program.Misuse(command, "--prefix %q does not begin with --key-prefix %q", t.prefix, t.keyPrefix)
		}
		t.prefix, t.pool.Plain = rest, true
		return t.run(t.export)
	}
	return command
}

// run opens both ends and carries the job out.
func (t *carriage) run(work func(context.Context, *adopt.Gateway, *adopt.Pool, *pools.State) error) (err error) {
	if t.pool.Name == "" {
		return program.Misuse(t.command, "--pool is required")
	}
	if n := t.options.Parallel; n < 1 || n > 1024 {
		return program.Misuse(t.command, "--jobs %d: want 1 to 1024", n)
	}
	if t.options.BytesPerSecond, err = parseRate(t.rate); err != nil {
		return program.Misuse(t.command, "--throttle: %w", err)
	}
	return t.session.withCeph(t.command, t.access, func(connection *pools.Connection, state *pools.State) error {
		if state.Pool(t.pool.Name) == nil {
			return fmt.Errorf("the cluster of Ceph has no pool %q: `ceph osd pool ls` lists those it has", t.pool.Name)
		}
		pool, err := adopt.OpenPool(connection, t.pool)
		if err != nil {
			return err
		}
		defer pool.Close()
		return t.session.withClient(func(c *client.Client) error {
			gateway := &adopt.Gateway{Client: c, KeyPrefix: t.keyPrefix, Class: t.class}
			if t.class != "" {
				if err := gateway.CheckClass(t.command.Context()); err != nil {
					return err
				}
			}
			return work(t.command.Context(), gateway, pool, state)
		})
	})
}

func (t *carriage) adopt(ctx context.Context, gateway *adopt.Gateway, pool *adopt.Pool, state *pools.State) error {
	described := state.Pool(t.pool.Name)
	if err := adopt.CheckPool(described); err != nil {
		return err
	}
	if described.Snapshots > 0 {
		fmt.Fprintf(t.session.Messages, "note: the pool has %s; objects are adopted as they are now, snapshots are not\n",
			words.Count(int64(described.Snapshots), "snapshot"))
	}
	fmt.Fprintf(t.session.Messages, "looking at the names in %s\n", t.pool.Name)
	survey, err := pool.Survey(ctx)
	if err != nil {
		return err
	}
	if survey.Elsewhere > 0 {
		fmt.Fprintf(t.session.Messages, "note: %s lie in other namespaces of the pool; adopt them with --namespace\n",
			words.Count(survey.Elsewhere, "object"))
	}
	return t.carry(ctx, state, pool, gateway, "adoption", survey.Objects, 0, gateway)
}

func (t *carriage) export(ctx context.Context, gateway *adopt.Gateway, pool *adopt.Pool, state *pools.State) error {
	described := state.Pool(t.pool.Name)
	if err := adopt.CheckPool(described); err != nil {
		return fmt.Errorf("exporting into another program's pool: %w", err)
	}
	gateway.Prefix = t.prefix
	objects, bytes, err := gateway.Survey(ctx)
	if err != nil {
		return err
	}
	return t.carry(ctx, state, gateway, pool, "export", objects, bytes, gateway)
}

// carry runs the job between two ends and shows what becomes of it.
func (t *carriage) carry(ctx context.Context, state *pools.State, source adopt.Source, target adopt.Target, kind string, objects, bytes int64, gateway *adopt.Gateway) (err error) {
	cluster, err := gateway.Cluster(ctx)
	if err != nil {
		return err
	}
	path := t.journal
	if path == "" {
		if path, err = t.defaultJournal(kind); err != nil {
			return err
		}
	}
	identity := fmt.Sprintf("%s: pool %q (%d) namespace %q of Ceph %s, class %q and keys %q of Restripe %s", kind,
		t.pool.Name, state.Pool(t.pool.Name).ID, t.pool.Namespace, state.FSID, t.class, t.keyPrefix, cluster)
	journal, err := adopt.OpenJournal(ctx, path, identity)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	job, err := adopt.NewJob(source, target, journal, t.options)
	if err != nil {
		return err
	}
	job.Expect(objects, bytes)
	m := progress.New(t.session.Messages)
	stop := m.Watch(func() string { return transferLine(job.Progress()) })
	report, err := job.Run(ctx)
	stop()
	if shown := t.showReport(report, kind); shown != nil {
		return errors.Join(err, shown)
	}
	switch {
	case err != nil:
		fmt.Fprintf(t.session.Messages, "not all objects were looked at; run the same command again to go on (journal %s)\n", journal.Path())
		return err
	case !report.Complete():
		return fmt.Errorf("%w: %s refused, %s failed", errNotAllCarried, words.Number(report.Refused), words.Number(report.Failed))
	}
	return nil
}

// errNotAllCarried ends an adoption or export that left objects behind.
var errNotAllCarried = errors.New("not all objects were carried")

func (t *carriage) defaultJournal(kind string) (string, error) {
	directory, err := stateDirectory()
	if err != nil {
		return "", err
	}
	name := t.pool.Name
	if t.pool.Namespace != "" {
		name += "+" + t.pool.Namespace
	}
	return filepath.Join(directory, "journals", kind+"-"+strings.ReplaceAll(name, "/", "%2F")+".db"), nil
}

// transferLine shows how far a job is.
func transferLine(p adopt.Progress) string {
	return fmt.Sprintf("%s %5s  %s of %s objects  %s  %s left", progress.Bar(p.Objects, p.Total), words.Share(p.Objects, p.Total),
		words.Number(p.Objects), words.Number(p.Total), words.Bytes(p.Bytes), words.Left(p.LeftSeconds))
}

// problemsShown bounds the lines about objects that were not carried.
const problemsShown = 20

func (t *carriage) showReport(report adopt.Report, kind string) error {
	carried := "adopted"
	if kind == "export" {
		carried = "exported"
	}
	l := listing{value: report, columns: []column{{title: "WHAT"}, {title: "OBJECTS", right: true}, {title: "BYTES", right: true}}}
	for _, row := range []struct {
		what    string
		objects int64
		bytes   string
	}{
		{carried + " and verified", report.Carried, words.Bytes(report.CarriedBytes)},
		{"skipped: verified before, unchanged", report.Skipped, "-"},
		{"deleted at the source", report.Trimmed, "-"},
		{"gone before they were read", report.Gone, "-"},
		{"refused", report.Refused, "-"},
		{"failed", report.Failed, "-"},
	} {
		l.rows = append(l.rows, []string{row.what, words.Number(row.objects), row.bytes})
	}
	if err := t.session.show(t.format, l); err != nil {
		return err
	}
	for i, problem := range report.Problems {
		if i == problemsShown {
			fmt.Fprintf(t.session.Messages, "... and %s more; -o json has up to 1,000\n", words.Number(report.Refused+report.Failed-problemsShown))
			break
		}
		word := "refused"
		if problem.Failed {
			word = "failed"
		}
		fmt.Fprintf(t.session.Messages, "%s: %q: %s\n", word, problem.Name, problem.Reason)
	}
	return nil
}

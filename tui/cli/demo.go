package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/local"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/policies"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/demo"
	"github.com/restripe/restripe/tui/progress"
	"github.com/restripe/restripe/tui/tree"
)

type demoFlags struct {
	source string
	store  launch.StoreKind
	agents int
	jobs   int
	keep   bool
}

func demoCommand(s *session) *cobra.Command {
	var f demoFlags
	var kind string
	command := &cobra.Command{
		Use: "demo [DIRECTORY]", Short: "Show it: store a tree under a policy, let it cool and heat, and watch the operator move it",
		Long: "Start a cluster in a temporary directory, apply policies, store a directory tree as rep(3), and read a part of it again and\n" +
			"again: the operator leaves that part where it is, and takes the rest to rs(4,2) and rs(12,2) as it cools. Then another part is\n" +
			"popular, and the operator takes that back to rep(3), while one agent is killed. What is read is compared with the files byte\n" +
			"by byte all the while, and everything once more at the end. Without DIRECTORY it is the source tree of the Go toolchain.\n" +
			"Nothing is left running or on disk unless --keep is given.",
		Args: cobra.MaximumNArgs(1),
	}
	flags := command.Flags()
	flags.StringVar(&kind, "store", string(launch.StoreFile), "what each node keeps its blocks in: file, memcached or redis")
	flags.IntVar(&f.agents, "agents", launch.DefaultAgents, "number of nodes; the widest step needs 14, and one is killed")
	flags.IntVar(&f.jobs, "jobs", 128, "objects stored at a time")
	flags.BoolVar(&f.keep, "keep", false, "stay up at the end, until interrupted, and keep the state directory")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		var err error
		if f.store, err = launch.ParseStoreKind(kind); err != nil {
			return program.Misuse(command, "--store: %w", err)
		}
		if len(arguments) == 1 {
			f.source = arguments[0]
		}
		return s.demo(command.Context(), f)
	}
	return command
}

// defaultTree is the source tree of the Go toolchain in PATH.
func defaultTree() (string, error) {
	roots := []string{os.Getenv("GOROOT")}
	if program, err := exec.LookPath("go"); err == nil {
		if program, err = filepath.EvalSymlinks(program); err == nil {
			roots = append(roots, filepath.Dir(filepath.Dir(program)))
		}
	}
	for _, root := range roots {
		source := filepath.Join(root, "src")
		if info, err := os.Stat(source); root != "" && err == nil && info.IsDir() {
			return source, nil
		}
	}
	return "", errors.New("there is no Go source tree here: name a directory, for example `restripe demo ~/photos`")
}

// demo is the whole demonstration.
func (s *session) demo(ctx context.Context, f demoFlags) (err error) {
	if f.source == "" {
		if f.source, err = defaultTree(); err != nil {
			return err
		}
	}
	files, err := tree.Read(f.source, demo.Prefix)
	if err != nil {
		return err
	}
	if len(files.Files) < demo.FewestFiles || files.Bytes < demo.FewestBytes {
		return fmt.Errorf("%s holds %s of %s altogether: name a directory with %d files and %s or more, so that a part can be hot and the rest cold",
			f.source, words.Count(int64(len(files.Files)), "file"), words.Bytes(files.Bytes), demo.FewestFiles, words.Bytes(demo.FewestBytes))
	}
	directory, err := os.MkdirTemp("", "restripe-demo-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	if !f.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	}
	m, began := progress.New(s.Messages), time.Now()
	m.Say("Starting %d agents over %s, a gateway, an API server and an operator in %s", f.agents, f.store, directory)
	messages := slog.NewTextHandler(m, nil)
	// What the operator does is told by the demonstration itself.
	quiet := slog.New(slog.NewTextHandler(m, &slog.HandlerOptions{Level: slog.LevelError}))
	running, err := startMachine(ctx, launch.Options{
		Directory: directory, Store: f.store, Agents: f.agents, Logger: slog.New(messages),
	}, &local.Options{
		Directory: directory, Backend: demo.Backend, Intervals: demoIntervals, Listen: "127.0.0.1:0", Logger: quiet,
		Console: localConsole(directory, "", quiet),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, running.stop()) }()
	m.Say("See it and steer it at %s", running.consolePage())
	server, err := s.apiServer(&serverFlags{kubeconfig: running.control.Kubeconfig()})
	if err != nil {
		return err
	}
	gateway, err := client.New(running.cluster.Gateway())
	if err != nil {
		return err
	}
	defer gateway.Close()
	report, err := demo.Run(ctx, demo.Options{
		Files: &files, Jobs: f.jobs, Cluster: running.cluster, Gateway: gateway, Control: demoControl{server}, Meter: m, Began: began,
	})
	if err != nil {
		return err
	}
	lines, err := demoLines(ctx, server, report)
	if err != nil {
		return err
	}
	if err := program.WriteLines(s.Out, lines); err != nil {
		return err
	}
	if f.keep {
		m.Say("")
		if err := program.WriteLines(s.Out, upLines(running, f.store, "")); err != nil {
			return err
		}
		<-ctx.Done()
	}
	return nil
}

// demoIntervals let the operator look as often as the demonstration's classes live fast.
var demoIntervals = controller.Intervals{Look: time.Second, Progress: 500 * time.Millisecond}

// demoControl is the API server as the demonstration uses it.
type demoControl struct{ server *apiServer }

// Apply declares the objects of a text.
func (c demoControl) Apply(ctx context.Context, source policies.Source) (lines []string, err error) {
	known, err := c.server.known(ctx)
	if err != nil {
		return nil, err
	}
	objects, findings := policies.Check(policies.Options{Known: known}, source)
	if wrong := findings.Errors(); len(wrong) > 0 {
		return nil, wrong
	}
	for _, object := range objects {
		o, err := c.server.send(ctx, object, sending{})
		if err != nil {
			return lines, err
		}
		lines = append(lines, fmt.Sprintf("%s/%s %s", o.kind, o.name, o.verb()))
	}
	return lines, nil
}

// Hold holds a policy.
func (c demoControl) Hold(ctx context.Context, policy string) (string, error) {
	return c.server.stopPolicy(ctx, policy, v1alpha1.StopHold)
}

// Transitions lists the Transitions, oldest first.
func (c demoControl) Transitions(ctx context.Context) ([]v1alpha1.Transition, error) {
	var list v1alpha1.TransitionList
	if err := c.server.List(ctx, &list); err != nil {
		return nil, c.server.explain(err)
	}
	return list.Items, nil
}

// Unmet says which conditions of a policy do not hold.
func (c demoControl) Unmet(ctx context.Context, name string) string {
	var policy v1alpha1.RedundancyPolicy
	if err := c.server.read(ctx, kindNamed("policy"), name, &policy); err != nil {
		return err.Error()
	}
	var said []string
	for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionFeasible, v1alpha1.ConditionConverged} {
		if c := meta.FindStatusCondition(policy.Status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			said = append(said, c.Message)
		}
	}
	return strings.Join(said, "; ")
}

var demoColumns = []column{
	{title: "STEP"}, {title: "TRANSITIONS", right: true}, {title: "GROUPS", right: true}, {title: "IN CELLS", right: true},
	{title: "BLOCKS SENT: PREDICTED", right: true}, {title: "MEASURED", right: true},
	{title: "BYTES SENT: PREDICTED", right: true}, {title: "MEASURED", right: true},
	{title: "RE-ENCODING / NEW POOL", right: true}, {title: "TIME", right: true},
}

// demoLines are what moved, a line for each way along the ladder, and what the API server says of it.
func demoLines(ctx context.Context, server *apiServer, report *demo.Report) ([]string, error) {
	var rows [][]string
	for _, step := range report.Steps {
		rows = append(rows, []string{
			step.From + " -> " + step.To, strconv.Itoa(step.Transitions), words.Number(step.Groups), words.Bytes(step.Bytes),
			words.Number(step.Predicted.BlocksSent), words.Number(step.Measured.BlocksSent),
			words.Bytes(step.Predicted.BytesSent), words.Bytes(step.Measured.BytesSent),
			words.Bytes(step.Reencode) + " / " + words.Bytes(step.NewPool), words.Span(words.Seconds(step.Seconds)),
		})
	}
	kind := kindNamed("policy")
	table, err := server.table(ctx, kind, "")
	if err != nil {
		return nil, server.explain(err)
	}
	declared, err := tableListing(kind, table)
	if err != nil {
		return nil, err
	}
	lines := append([]string{""}, tableLines(declared.columns, declared.rows, false)...)
	lines = append(lines, "")
	lines = append(lines, tableLines(demoColumns, rows, true)...)
	lines = append(lines, "",
		"IN CELLS is what the groups' data cells hold, padding and room between small objects included; plans count whole cells.",
		"MEASURED is what the agents sent in the attempts that committed, without the zeros at the end of cells; what attempts had sent "+
			"that the kill ended is not in it.")
	return append(lines, report.Lines...), nil
}

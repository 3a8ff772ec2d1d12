package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
)

// demoSteps is the way of the demonstration along the built-in ladder, and back.
var demoSteps = []string{"rs(4,2)", "rs(12,2)", "rs(4,2)", "rep(3)"}

// demoKillStep is the step in whose middle an agent is killed: one that needs the network, so that it is felt.
const demoKillStep = 2

// demoVictim is the agent that is killed.
const demoVictim = "n5"

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
		Use: "demo [DIRECTORY]", Short: "Show it: store a tree, take it along its ladder and back under a verifying reader",
		Long: "Start a cluster in a temporary directory, store a directory tree as rep(3), and take it to rs(4,2), rs(12,2), rs(4,2)\n" +
			"and rep(3) while a reader compares what it reads with the files, byte by byte. One agent is killed on the way.\n" +
			"Without DIRECTORY it is the source tree of the Go toolchain. Nothing is left running or on disk unless --keep is given.",
		Args: cobra.MaximumNArgs(1),
	}
	flags := command.Flags()
	flags.StringVar(&kind, "store", string(launch.StoreFile), "what each node keeps its blocks in: file, memcached or redis")
	flags.IntVar(&f.agents, "agents", 14, "number of nodes; the widest step needs 14")
	flags.IntVar(&f.jobs, "jobs", 128, "objects stored at a time")
	flags.BoolVar(&f.keep, "keep", false, "stay up at the end, until interrupted, and keep the state directory")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		var err error
		if f.store, err = launch.ParseStoreKind(kind); err != nil {
			return misuse(command, "--store: %w", err)
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
	files, err := readTree(f.source, "")
	if err != nil {
		return err
	}
	if len(files.files) == 0 {
		return fmt.Errorf("%s holds no files: name a directory with some", f.source)
	}
	directory, err := os.MkdirTemp("", "restripe-demo-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	if !f.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	}
	m := newMeter(s.messages)
	m.say("Starting %d agents over %s and a gateway in %s", f.agents, f.store, directory)
	cluster, err := launch.Start(ctx, launch.Options{
		Directory: directory, Store: f.store, Agents: f.agents, Logger: slog.New(slog.NewTextHandler(meterWriter{m}, nil)),
	})
	if err != nil {
		return fmt.Errorf("starting the cluster: %w", err)
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	c, err := client.New(cluster.Gateway())
	if err != nil {
		return err
	}
	defer c.Close()
	report, err := s.demoRun(ctx, f, m, cluster, c, &files)
	if err != nil {
		return err
	}
	if err := writeLines(s.out, report); err != nil {
		return err
	}
	if f.keep {
		m.say("")
		if err := writeLines(s.out, upLines(cluster, f.store)); err != nil {
			return err
		}
		<-ctx.Done()
	}
	return nil
}

// meterWriter sends log lines past the progress line.
type meterWriter struct{ meter *meter }

// Write prints one log line.
func (w meterWriter) Write(line []byte) (int, error) {
	w.meter.say("%s", trimNewline(string(line)))
	return len(line), nil
}

func trimNewline(text string) string {
	if n := len(text); n > 0 && text[n-1] == '\n' {
		return text[:n-1]
	}
	return text
}

// demoRun stores the tree, takes it through the steps, and returns the report.
func (s *session) demoRun(ctx context.Context, f demoFlags, m *meter, cluster *launch.Cluster, c *client.Client, files *tree) (report []string, err error) {
	begin := time.Now()
	var done progress
	stop := m.watch(func() string { return "put as rep(3) " + files.line(&done, time.Since(begin)) })
	err = files.put(ctx, c, client.PutOptions{Class: "default", Scheme: "rep(3)"}, f.jobs, &done)
	stop()
	if err != nil {
		return nil, err
	}
	put := time.Since(begin)
	m.say("Stored %s files, %s, as rep(3) in %s", countText(int64(len(files.files))), bytesText(files.bytes), durationText(put))

	reader := startReader(ctx, c, files)
	defer func() {
		if stopped := reader.stop(); err == nil {
			err = stopped
		}
	}()
	killed := fmt.Sprintf("The step in which agent %s was to be killed ended too soon for it; a larger tree gives it time.", demoVictim)
	rows := [][]string{{"put rep(3)", countText(int64(len(files.files))), bytesText(files.bytes), "-", "-", "-", "-", "-", "-", durationText(put), "-"}}
	now := "rep(3)"
	for i, to := range demoSteps {
		victim := ""
		if i == demoKillStep {
			victim = demoVictim
		}
		verifiedBefore := reader.verified.Load()
		t, hit, err := s.demoStep(ctx, m, cluster, c, reader, to, victim)
		if err != nil {
			return nil, err
		}
		if hit {
			killed = fmt.Sprintf("Agent %s was killed in the middle of %s -> %s and started again; the transition went on and completed: %s groups in %s attempts.",
				victim, now, to, countText(t.GroupsDone), countText(t.Attempts))
		}
		rows = append(rows, demoRow(now+" -> "+to, t, files, reader.verified.Load()-verifiedBefore))
		m.say("%s -> %s: %s in %s, %s sent (predicted %s)", now, to, bytesText(t.BytesDone),
			durationText(time.Duration(t.ElapsedSeconds*float64(time.Second))), bytesText(t.Measured.BytesSent), bytesText(t.Predicted.BytesSent))
		now = to
	}
	if err := reader.stop(); err != nil {
		return nil, err
	}
	passBegin := time.Now()
	stop = m.watch(func() string {
		return fmt.Sprintf("reading everything once more: %s of %s objects", countText(reader.finalObjects.Load()), countText(int64(len(files.files))))
	})
	err = reader.everything(ctx, f.jobs)
	stop()
	if err != nil {
		return nil, err
	}
	lines := append([]string{""}, tableLines(demoColumns, rows, true)...)
	return append(lines, "", "IN CELLS is what the groups' data cells hold, padding and room between small objects included; what is sent is counted in cells.",
		"MEASURED is what the agents counted in the attempts that committed; what attempts had sent that the kill ended is not in it.",
		fmt.Sprintf("The reader compared %s objects (%s) with their files while all this went on, and all %s once more at the end in %s: every byte was right.",
			countText(reader.verified.Load()), bytesText(reader.bytes.Load()), countText(int64(len(files.files))), durationText(time.Since(passBegin))),
		killed), nil
}

var demoColumns = []column{
	{title: "STEP"}, {title: "OBJECTS", right: true}, {title: "BYTES", right: true}, {title: "IN CELLS", right: true},
	{title: "BLOCKS SENT: PREDICTED", right: true}, {title: "MEASURED", right: true},
	{title: "BYTES SENT: PREDICTED", right: true}, {title: "MEASURED", right: true},
	{title: "RE-ENCODING / NEW POOL", right: true}, {title: "TIME", right: true}, {title: "VERIFIED MEANWHILE", right: true},
}

func demoRow(step string, t gateway.Transition, files *tree, verified int64) []string {
	return []string{
		step, countText(int64(len(files.files))), bytesText(files.bytes), bytesText(t.BytesDone),
		countText(t.Predicted.BlocksSent), countText(t.Measured.BlocksSent),
		bytesText(t.Predicted.BytesSent), bytesText(t.Measured.BytesSent),
		bytesText(t.Baselines["reencode"]) + " / " + bytesText(t.Baselines["copy-pool"]),
		durationText(time.Duration(t.ElapsedSeconds * float64(time.Second))), countText(verified),
	}
}

// demoStep takes everything to a scheme, killing victim once a quarter is done where one is named, and reports whether
// it was killed before the step ended.
func (s *session) demoStep(ctx context.Context, m *meter, cluster *launch.Cluster, c *client.Client, reader *demoReader, to, victim string) (last gateway.Transition, hit bool, err error) {
	t, err := c.StartTransition(ctx, gateway.TransitionRequest{Selector: gateway.Selector{Class: "default"}, To: to})
	if err != nil {
		return t, false, fmt.Errorf("starting the transition to %s: %w", to, err)
	}
	last, err = c.Watch(ctx, t.ID, func(t gateway.Transition) error {
		if err := reader.failure(); err != nil {
			return err
		}
		m.show(time.Now(), func() string {
			return transitionLine(t) + fmt.Sprintf("  %s objects verified", countText(reader.verified.Load()))
		})
		if victim == "" || hit || t.State.Final() || t.GroupsDone == 0 || 4*t.GroupsDone < t.GroupsTotal {
			return nil
		}
		hit = true
		m.say("Killing agent %s (process %d) after %s of %s groups", victim, cluster.Pids()[victim], countText(t.GroupsDone), countText(t.GroupsTotal))
		return cluster.Kill(victim)
	})
	m.clear()
	if err != nil {
		return last, hit, err
	}
	if last.State != gateway.TransitionDone {
		return last, hit, fmt.Errorf("%w: to %s: %s %s", errNotDone, to, last.State, last.Error)
	}
	return last, hit, nil
}

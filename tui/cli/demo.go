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

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/local"
	"github.com/restripe/restripe/operator/words"
)

// demoVictim is the agent that is killed.
const demoVictim = "n5"

// fewestFiles and fewestBytes are what a demonstration needs: small files share groups, and a part of the groups must be
// without what is popular.
const (
	fewestFiles = 20
	fewestBytes = 1 << 20
)

// demoPrefix begins the keys of the demonstration's objects: those of the policy media.
const demoPrefix = "media/"

// demoPolicies is where the policies of the demonstration are among the examples.
const demoPolicies = "examples/demo/policies.yaml"

// demoBackend is the backend that they name.
const demoBackend = "demo"

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
	files, err := readTree(f.source, demoPrefix)
	if err != nil {
		return err
	}
	if len(files.files) < fewestFiles || files.bytes < fewestBytes {
		return fmt.Errorf("%s holds %s of %s altogether: name a directory with %d files and %s or more, so that a part can be hot and the rest cold",
			f.source, words.Count(int64(len(files.files)), "file"), words.Bytes(files.bytes), fewestFiles, words.Bytes(fewestBytes))
	}
	directory, err := os.MkdirTemp("", "restripe-demo-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	if !f.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	}
	m, began := newMeter(s.messages), time.Now()
	m.say("Starting %d agents over %s, a gateway, an API server and an operator in %s", f.agents, f.store, directory)
	messages := slog.NewTextHandler(meterWriter{m}, nil)
	// What the operator does is told by the demonstration itself.
	quiet := slog.New(slog.NewTextHandler(meterWriter{m}, &slog.HandlerOptions{Level: slog.LevelError}))
	running, err := startMachine(ctx, launch.Options{
		Directory: directory, Store: f.store, Agents: f.agents, Logger: slog.New(messages),
	}, &local.Options{
		Directory: directory, Backend: demoBackend, Intervals: demoIntervals, Listen: "127.0.0.1:0", Logger: quiet,
		Console: localConsole(directory, quiet),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, running.stop()) }()
	m.say("See it and steer it at %s", running.consolePage())
	d, err := newDemo(s, f, m, running, &files, began)
	if err != nil {
		return err
	}
	defer d.gateway.Close()
	if err := d.run(ctx); err != nil {
		return err
	}
	if f.keep {
		m.say("")
		if err := writeLines(s.out, upLines(running, f.store)); err != nil {
			return err
		}
		<-ctx.Done()
	}
	return nil
}

// demoIntervals let the operator look as often as the demonstration's classes live fast.
var demoIntervals = controller.Intervals{Look: time.Second, Progress: 500 * time.Millisecond}

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

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/e2e/bench/provenance"
)

const document = "docs/benchmarks/security.md"

// bench is what is measured, and where.
type bench struct {
	directory, binary     string
	rounds, objects, slow int
}

func main() {
	if len(os.Args) == 5 && os.Args[1] == asCrowd {
		if err := beCrowd(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, "slow clients:", err)
			os.Exit(1)
		}
		return
	}
	b := bench{}
	write := flag.Bool("write", false, "write "+document)
	flag.StringVar(&b.directory, "directory", "/dev/shm", "where the stores are made: in memory, so that disks hide nothing")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds with and without certificates, in turns; 0 leaves them out")
	flag.IntVar(&b.objects, "objects", 128, "objects of 1 MiB in a round")
	flag.IntVar(&b.slow, "slow", 256, "slow clients of each kind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx, *write); err != nil {
		fmt.Fprintln(os.Stderr, "security:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, write bool) (err error) {
	if b.directory, err = os.MkdirTemp(b.directory, "restripe-security-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.directory)) }()
	program, err := os.MkdirTemp("", "restripe-security-") // not in memory, where its pages would count
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(program)) }()
	b.binary = filepath.Join(program, "restripe")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "./tui/restripe-agent").CombinedOutput(); err != nil {
		return fmt.Errorf("building restripe: %w\n%s", err, out)
	}
	text, err := b.head()
	if err != nil {
		return err
	}
	for _, part := range []func(context.Context) (string, error){b.certificates, b.slowClients} {
		report, err := part(ctx)
		if err != nil {
			return err
		}
		text += report
	}
	if _, err := io.WriteString(os.Stdout, text); err != nil || !write {
		return err
	}
	return os.WriteFile(document, []byte(text), 0o644)
}

// cluster is one that runs, and a client of its gateway.
type cluster struct {
	*launch.Cluster
	client *client.Client
}

// start runs a cluster of fifteen agents with the class that a new cluster has.
func (b *bench) start(ctx context.Context, name string, plain bool) (*cluster, error) {
	started, err := launch.Start(ctx, launch.Options{
		Directory: filepath.Join(b.directory, name), Binary: b.binary, Agents: 15, Plain: plain,
	})
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: started}
	if c.client, err = client.New("http://" + started.Gateway()); err != nil {
		return nil, errors.Join(err, started.Stop())
	}
	return c, nil
}

func (c *cluster) stop() error {
	c.client.Close()
	return c.Stop()
}

// head is the beginning of the page.
func (b *bench) head() (string, error) {
	source, err := provenance.Read(fmt.Sprintf("go run ./e2e/bench/security -write -rounds %d -objects %d -slow %d", b.rounds, b.objects, b.slow))
	if err != nil {
		return "", err
	}
	return "# What doors and bounds cost\n\n" +
		"Clusters of 15 agents and a gateway as `restripe up` runs them, on one machine, with stores in memory: what is shown is " +
		"the cost to processors, which all parts share. Ratios are of turns within one run.\n\n" +
		source.List("times are then preliminary") + "\n", nil
}

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
)

// patience bounds every wait of the fault tests for another process.
const patience = time.Minute

// silence is what agents are given for the time after which a gateway that was killed is forgotten: well below patience.
const silence = "10s"

// answer is what one command printed and how it ended.
type answer struct {
	out, messages string
	code          int
}

// restripe runs one command line of the program against a gateway, as a user would.
func restripe(t *testing.T, gateway string, arguments ...string) answer {
	t.Helper()
	return restripeWith(t, nil, gateway, arguments...)
}

// restripeWith is restripe with a standard input.
func restripeWith(t *testing.T, stdin io.Reader, gateway string, arguments ...string) answer {
	t.Helper()
	return restripeIn(t, []string{"RESTRIPE_GATEWAY=" + gateway}, stdin, arguments...)
}

// restripeIn is restripe with a standard input and more of an environment.
func restripeIn(t *testing.T, environment []string, stdin io.Reader, arguments ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, program(t), arguments...)
	command.Env = append(os.Environ(), environment...)
	var out, messages bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = stdin, &out, &messages
	err := command.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) || ctx.Err() != nil {
		t.Fatalf("restripe %q: %v, %v\n%s", arguments, err, ctx.Err(), messages.String())
	}
	return answer{out.String(), messages.String(), command.ProcessState.ExitCode()}
}

// must is restripe for commands that have to succeed; it returns what they print.
func must(t *testing.T, gateway string, arguments ...string) string {
	t.Helper()
	a := restripe(t, gateway, arguments...)
	if a.code != 0 {
		t.Fatalf("restripe %q: exit code %d\n%s%s", arguments, a.code, a.out, a.messages)
	}
	return a.out
}

// refused fails the test unless a command failed, with an error that has all the words: the cause and the cure.
func refused(t *testing.T, a answer, words ...string) {
	t.Helper()
	if a.code == 0 {
		t.Errorf("it succeeded: %s%s", a.out, a.messages)
	}
	if lines := strings.Count(strings.TrimSpace(a.messages), "\n") + 1; lines > 4 || strings.Contains(a.messages, "goroutine ") {
		t.Errorf("the error is no message for people:\n%s", a.messages)
	}
	for _, word := range words {
		if !strings.Contains(a.messages, word) {
			t.Errorf("the error does not say %q:\n%s", word, a.messages)
		}
	}
	t.Logf("%s", strings.TrimSpace(a.messages))
}

// daemon is a server of the program that a test runs by itself.
type daemon struct {
	name    string
	address string
	command *exec.Cmd
	exited  chan struct{}
	mutex   sync.Mutex
	log     bytes.Buffer
}

// Write takes what the daemon writes on its standard error.
func (d *daemon) Write(p []byte) (int, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.log.Write(p)
}

func (d *daemon) messages() string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.log.String()
}

// serve starts an agent or a gateway and returns once it listens. It leaves with the test, and with the test's process.
func serve(t *testing.T, arguments ...string) *daemon {
	t.Helper()
	return serveCommand(t, exec.Command(program(t), append(arguments, "--"+launch.LifelineFlag)...))
}

func serveCommand(t *testing.T, command *exec.Cmd) *daemon {
	t.Helper()
	d := &daemon{name: strings.Join(command.Args[1:], " "), command: command, exited: make(chan struct{})}
	command.Stderr = d
	lifeline, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	printed, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("starting restripe %s: %v", d.name, err)
	}
	address := make(chan string, 1)
	go func() {
		defer close(d.exited)
		lines := bufio.NewScanner(printed)
		for lines.Scan() {
			if _, text, found := strings.Cut(lines.Text(), launch.ListeningMark); found {
				address <- text
			}
		}
		if err := command.Wait(); err != nil {
			fmt.Fprintf(d, "%v\n", err)
		}
	}()
	t.Cleanup(func() {
		d.stop(t)
		if err := lifeline.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("letting go of restripe %s: %v", d.name, err)
		}
		if t.Failed() {
			t.Logf("---- restripe %s\n%s", d.name, d.messages())
		}
	})
	select {
	case d.address = <-address:
	case <-d.exited:
		t.Fatalf("restripe %s ended before it listened:\n%s", d.name, d.messages())
	case <-time.After(patience):
		t.Fatalf("restripe %s does not listen:\n%s", d.name, d.messages())
	}
	return d
}

// stop asks the daemon to leave and waits until it has.
func (d *daemon) stop(t *testing.T) {
	t.Helper()
	if err := d.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("stopping restripe %s: %v", d.name, err)
	}
	select {
	case <-d.exited:
	case <-time.After(patience):
		t.Errorf("restripe %s does not leave on SIGTERM", d.name)
		if err := d.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("killing restripe %s: %v", d.name, err)
		}
		<-d.exited
	}
}

// nodeFile writes the file of members for gateways: n1, n2, ... in the order of the agents' addresses.
func nodeFile(t *testing.T, agents ...*daemon) string {
	t.Helper()
	var members []launch.Member
	for i, agent := range agents {
		members = append(members, launch.Member{ID: fmt.Sprintf("n%d", i+1), Address: agent.address})
	}
	text, err := yaml.Marshal(map[string][]launch.Member{"nodes": members})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "nodes.yaml", string(text))
}

// agentsOver starts agents n1, n2, ... over the stores.
func agentsOver(t *testing.T, stores ...string) []*daemon {
	t.Helper()
	return agentsWith(t, silence, stores...)
}

// agentsWith is agentsOver with another time after which a gateway is forgotten.
func agentsWith(t *testing.T, silence string, stores ...string) []*daemon {
	t.Helper()
	var agents []*daemon
	for i, store := range stores {
		agents = append(agents, serve(t, "agent", "--id", fmt.Sprintf("n%d", i+1), "--store", store, "--gateway-silence", silence))
	}
	return agents
}

// directories names file stores of the test's own.
func directories(t *testing.T, count int) []string {
	t.Helper()
	var stores []string
	for i := range count {
		stores = append(stores, "file:"+filepath.Join(t.TempDir(), fmt.Sprintf("store%d", i+1)))
	}
	return stores
}

// gatewayOver starts a gateway with a catalog of its own over agents; classes may be empty.
func gatewayOver(t *testing.T, classes string, agents ...*daemon) *daemon {
	t.Helper()
	arguments := []string{"gateway", "--catalog", "sqlite:" + filepath.Join(t.TempDir(), "catalog.db"), "--nodes", nodeFile(t, agents...),
		"--listen", "127.0.0.1:0", "--grace", "0s"}
	if classes != "" {
		arguments = append(arguments, "--classes", write(t, "classes.yaml", classes))
	}
	return serve(t, arguments...)
}

// write makes a file in a directory of the test's own and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// clientOf connects to a gateway.
func clientOf(t *testing.T, address string) *client.Client {
	t.Helper()
	c, err := client.New(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// put stores data and fails the test if that is refused.
func put(t *testing.T, c *client.Client, key string, data []byte, options client.PutOptions) {
	t.Helper()
	options.Size, options.SizeKnown = int64(len(data)), true
	if _, err := c.Put(t.Context(), key, bytes.NewReader(data), options); err != nil {
		t.Fatalf("storing %.40q: %v", key, err)
	}
}

// fetch reads an object whole.
func fetch(ctx context.Context, c *client.Client, key string) ([]byte, error) {
	object, err := c.Get(ctx, key, client.Range{})
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(object)
	return data, errors.Join(err, object.Close())
}

// holds fails the test unless the object has these bytes.
func holds(t *testing.T, c *client.Client, key string, want []byte) {
	t.Helper()
	got, err := fetch(t.Context(), c, key)
	if err != nil {
		t.Errorf("reading %.40q: %v", key, err)
		return
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%.40q: %d bytes that are not the %d stored", key, len(got), len(want))
	}
}

// until polls until a fact about other processes holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatalf("it does not become so that %s", what)
		}
	}
}

// noise returns random bytes that a seed repeats.
func noise(seed uint64, length int) []byte {
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	data := make([]byte, length)
	if _, err := source.Read(data); err != nil { // a ChaCha8 never fails
		panic(err) // invariant: see above
	}
	return data
}

// atRest sweeps until attempts and dead blocks are gone, and fails the test if a further sweep finds anything left over:
// what was refused must not have left blocks behind.
func atRest(t *testing.T, c *client.Client) {
	t.Helper()
	until(t, "attempts and dead blocks are gone", func() bool {
		if _, err := c.Sweep(t.Context(), api.SweepRequest{}); err != nil {
			return false
		}
		status, err := c.Status(t.Context())
		return err == nil && status.Active == 0 && status.Graves == 0
	})
	result, err := c.Sweep(t.Context(), api.SweepRequest{})
	if err != nil || !leftNothing(result) {
		t.Errorf("a sweep at rest: %+v, %v; want nothing left over", result, err)
	}
}

// blocksIn lists the block files below the file stores.
func blocksIn(t *testing.T, root string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.Contains(path, "/values/") && strings.HasPrefix(entry.Name(), "b ") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

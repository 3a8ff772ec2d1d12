//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/agent/catalog/postgres/postgrestest"
)

const (
	agentPort, gatewayPort, storePort = ":7481", ":7480", ":7482"

	bridge     = "bridge"
	insideLink = "eth0" // the end of a link inside its namespace

	// nowhere is a hardware address that no link has: what is sent to it is lost on the bridge, silently.
	nowhere = "02:00:00:00:00:01"

	diskSize = 1 << 30
)

// place is a network namespace joined to the bridge by one link, with the processes of one machine and its disk.
type place struct {
	name, address, disk string
	processes           map[string]*child // "agent", "store", "gateway", "catalog"
}

// layNetwork makes a bridge and shows that links can be joined to it and packets led astray.
func layNetwork(ctx context.Context) error {
	if err := furnish(ctx); err != nil {
		return err
	}
	err := ip(ctx, "", "link add "+bridge+" type bridge mcast_snooping 0", "address add 198.18.0.254/24 dev "+bridge, "link set "+bridge+" up")
	if err == nil {
		err = ip(ctx, "", "netns add trial", "link add trial type veth peer name "+insideLink+" netns trial", "link set trial master "+bridge+" up", "link delete trial", "netns delete trial")
	}
	if err != nil {
		return fmt.Errorf("building a network: %w", err)
	}
	return nil
}

// newPlace makes the number-th namespace, from 1. Its disk is a file system in memory of its own.
func newPlace(ctx context.Context, base, name string, number int) (*place, error) {
	p := &place{name: name, address: "198.18.0." + strconv.Itoa(number), disk: filepath.Join(base, "disks", name), processes: map[string]*child{}}
	if err := os.MkdirAll(p.disk, 0o755); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", p.disk, "tmpfs", 0, fmt.Sprint("size=", diskSize)); err != nil {
		return nil, fmt.Errorf("mounting the disk of %s: %w", name, err)
	}
	err := ip(ctx, "", "netns add "+name, "link add "+name+" type veth peer name "+insideLink+" netns "+name, "link set "+name+" master "+bridge+" up")
	if err == nil {
		err = ip(ctx, name, "address add "+p.address+"/24 dev "+insideLink, "link set "+insideLink+" up", "link set lo up")
	}
	return p, err
}

// deafen loses what the others send to p.
func deafen(ctx context.Context, p *place, others []*place) error {
	for _, other := range others {
		if err := mute(ctx, other, []*place{p}); err != nil {
			return err
		}
	}
	return nil
}

// hearing ends deafen.
func hearing(ctx context.Context, p *place, others []*place) error {
	for _, other := range others {
		if err := speaking(ctx, other, []*place{p}); err != nil {
			return err
		}
	}
	return nil
}

// mute loses what p sends to the others; what they send arrives. This is a wrong entry in p's table of neighbours, which
// takes no firewall.
func mute(ctx context.Context, p *place, others []*place) error {
	var commands []string
	for _, other := range others {
		commands = append(commands, fmt.Sprintf("neighbour replace %s lladdr %s dev %s nud permanent", other.address, nowhere, insideLink))
	}
	return ip(ctx, p.name, commands...)
}

// speaking ends mute.
func speaking(ctx context.Context, p *place, others []*place) error {
	var commands []string
	for _, other := range others {
		// A flush, as it is no error where nothing is left to forget.
		commands = append(commands, fmt.Sprintf("neighbour flush to %s nud permanent dev %s", other.address, insideLink))
	}
	return ip(ctx, p.name, commands...)
}

// link takes the bridge's end of a link up or down; the other end loses its carrier.
func (p *place) link(ctx context.Context, state string) error {
	return ip(ctx, "", "link set "+p.name+" "+state)
}

// fill leaves the disk without room for anything, and drain gives it back.
func (p *place) fill() error {
	for range 10 { // the processes write on meanwhile
		var status unix.Statfs_t
		if err := unix.Statfs(p.disk, &status); err != nil {
			return err
		}
		used := int64(status.Blocks-status.Bfree) * status.Bsize
		err := p.resize(used + 16<<10)
		if !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return fmt.Errorf("the disk of %s grows faster than it can be cut", p.name)
}

func (p *place) drain() error { return p.resize(diskSize) }

func (p *place) resize(bytes int64) error {
	if err := unix.Mount("tmpfs", p.disk, "tmpfs", unix.MS_REMOUNT, fmt.Sprint("size=", bytes)); err != nil {
		return fmt.Errorf("resizing the disk of %s to %d bytes: %w", p.name, bytes, err)
	}
	return nil
}

// child is one process of a place, which is started again where it was killed.
type child struct {
	t         *testing.T
	place     *place
	name      string
	address   string // where it listens
	greeting  string // a question that a server answers with something other than an error once it is ready; empty: none
	arguments []string
	log       string

	mutex    sync.Mutex
	command  *exec.Cmd
	expected bool // its end
	ended    chan struct{}
}

const startPatience = 30 * time.Second

// run enters a process into a place and starts it.
func (p *place) run(t *testing.T, base, name, port, greeting string, arguments ...string) error {
	c := &child{
		t: t, place: p, name: name, address: p.address + port, greeting: greeting, arguments: append([]string{"netns", "exec", p.name}, arguments...),
		log: filepath.Join(base, "logs", p.name+"-"+name+".log"),
	}
	p.processes[name] = c
	return c.start(t.Context())
}

// start runs the process and returns once it answers. One that ends before, as it found its store away, is started again.
func (c *child) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		if err := c.launch(); err != nil {
			return fmt.Errorf("starting %s of %s: %w", c.name, c.place.name, err)
		}
		err := c.ready(ctx)
		if err == nil {
			c.mutex.Lock()
			c.expected = false
			c.mutex.Unlock()
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s of %s is not ready after %v: %w", c.name, c.place.name, startPatience, err)
		}
	}
}

func (c *child) launch() error {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	command, ended := exec.Command("ip", c.arguments...), make(chan struct{})
	command.Stdout, command.Stderr = log, log
	if err := errors.Join(command.Start(), log.Close()); err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.command, c.expected, c.ended = command, true, ended
	go func() {
		err := command.Wait()
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if !c.expected {
			c.t.Errorf("%s of %s ended by itself: %v", c.name, c.place.name, err)
		}
		close(ended)
	}()
	return nil
}

func (c *child) ready(ctx context.Context) error {
	for {
		err := c.greet()
		if err == nil {
			return nil
		}
		select {
		case <-c.ended:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// greet asks whether the process serves.
func (c *child) greet() error {
	_, err := ask(c.address, c.greeting)
	return err
}

// ask sends a line to a server and returns the first line of its answer, or nothing where there is no question.
func ask(address, line string) (answer string, err error) {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	if line == "" {
		return "", nil
	}
	if err := connection.SetDeadline(time.Now().Add(startPatience)); err != nil {
		return "", err
	}
	if _, err := connection.Write([]byte(line + "\r\n")); err != nil {
		return "", err
	}
	buffer := make([]byte, 512)
	n, err := connection.Read(buffer)
	if answer = strings.TrimSpace(string(buffer[:n])); strings.HasPrefix(answer, "-") || strings.HasPrefix(answer, "ERROR") {
		return "", fmt.Errorf("%s answers %s", address, answer)
	}
	return answer, err
}

// kill ends the process, and all that it has started, by SIGKILL, and returns when they are gone.
func (c *child) kill() error {
	c.mutex.Lock()
	c.expected = true
	process, ended := c.command.Process, c.ended
	c.mutex.Unlock()
	select {
	case <-ended:
		return nil // it did so by itself
	default:
	}
	gone, err := postgrestest.Kill(process.Pid)
	if err != nil {
		return fmt.Errorf("killing %s of %s: %w", c.name, c.place.name, err)
	}
	<-ended
	for deadline := time.After(startPatience); !gone(); {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			return fmt.Errorf("%s of %s was killed, and has processes that do not end", c.name, c.place.name)
		}
	}
	return nil
}

func (c *child) stop() error   { return c.signal(syscall.SIGSTOP) }
func (c *child) resume() error { return c.signal(syscall.SIGCONT) }

func (c *child) signal(signal syscall.Signal) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := postgrestest.Signal(c.command.Process.Pid, signal); err != nil {
		return fmt.Errorf("%s of %s: %w", c.name, c.place.name, err)
	}
	return nil
}

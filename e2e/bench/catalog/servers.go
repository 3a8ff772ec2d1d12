package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/restripe/restripe/agent/catalog/etcd"
)

// memberVariable has the settings of the member of etcd that this program is.
const memberVariable = "RESTRIPE_BENCH_ETCD"

// startPatience is how long a server may take until it listens, or until it has ended.
const startPatience = 2 * time.Minute

// server keeps the records of one catalog.
type server struct {
	name      string
	address   string // of a catalog
	hosts     []string
	directory string
	processes []*exec.Cmd
	end       os.Signal // what asks them to end; nil: that their standard input is closed
	input     []io.Closer
}

// engines are all that are measured, in the order of the tables; the first is what the others are compared with.
var engines = []string{"SQLite", "Redis", "etcd, 1 member", "etcd, 3 members", "PostgreSQL"}

// startServer starts what an engine needs, with its files below directory, so that it keeps what it acknowledged through a crash.
func startServer(ctx context.Context, name, directory string) (s *server, err error) {
	s = &server{name: name, directory: filepath.Join(directory, strings.NewReplacer(" ", "", ",", "").Replace(name))}
	if err := os.Mkdir(s.directory, 0o755); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting %s: %w", name, err), s.stop())
		}
	}()
	switch name {
	case "SQLite":
		s.address = "sqlite:" + filepath.Join(s.directory, "catalog.db")
		return s, nil
	case "Redis":
		err = s.redis()
	case "etcd, 1 member":
		err = s.etcd(1)
	case "etcd, 3 members":
		err = s.etcd(3)
	case "PostgreSQL":
		err = s.postgres(ctx)
	default:
		err = fmt.Errorf("no engine is called that; there are %s", strings.Join(engines, "; "))
	}
	if err != nil {
		return s, err
	}
	return s, s.listens(ctx)
}

// launch starts a process whose output goes to a file beside what it serves.
func (s *server) launch(command *exec.Cmd) error {
	log, err := os.OpenFile(s.directory+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	command.Stdout, command.Stderr = log, log
	if err := errors.Join(command.Start(), log.Close()); err != nil {
		return err
	}
	s.processes = append(s.processes, command)
	return nil
}

func freeHost() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (s *server) redis() error {
	host, err := freeHost()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return err
	}
	s.hosts, s.address, s.end = []string{host}, "redis://"+host, syscall.SIGTERM
	return s.launch(exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", s.directory, "--save", "",
		"--appendonly", "yes", "--appendfsync", "always"))
}

// member is the settings of one of etcd; hosts are host:port.
type member struct{ Name, Directory, Client, Peer, Cluster string }

func (s *server) etcd(count int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	members, peers := make([]member, count), make([]string, count)
	for i := range members {
		name := fmt.Sprint("m", i)
		m := member{Name: name, Directory: filepath.Join(s.directory, name)}
		var errClient, errPeer error
		m.Client, errClient = freeHost()
		m.Peer, errPeer = freeHost()
		if err := errors.Join(errClient, errPeer); err != nil {
			return err
		}
		members[i], peers[i] = m, m.Name+"=http://"+m.Peer
		s.hosts = append(s.hosts, m.Client)
	}
	s.address = "etcd://" + strings.Join(s.hosts, ",")
	for _, m := range members {
		m.Cluster = strings.Join(peers, ",")
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		command := exec.Command(self)
		command.Env = append(os.Environ(), memberVariable+"="+string(text))
		input, err := command.StdinPipe()
		if err != nil {
			return err
		}
		if err := s.launch(command); err != nil {
			return err
		}
		s.input = append(s.input, input)
	}
	return nil
}

// beMember is a member until its standard input ends.
func beMember(text string) error {
	var m member
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return fmt.Errorf("reading the settings: %w", err)
	}
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialCluster = m.Name, m.Directory, m.Cluster
	c.ListenClientUrls, c.ListenPeerUrls = []url.URL{{Scheme: "http", Host: m.Client}}, []url.URL{{Scheme: "http", Host: m.Peer}}
	c.AdvertiseClientUrls, c.AdvertisePeerUrls = c.ListenClientUrls, c.ListenPeerUrls
	c.MaxTxnOps, c.MaxRequestBytes, c.QuotaBackendBytes = etcd.MemberOperations, etcd.MemberBytes, 8<<30
	c.LogLevel, c.Logger, c.LogOutputs = "error", "zap", []string{"stderr"}
	running, err := embed.StartEtcd(c)
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // however it ends, nobody is there any more
		close(ended)
	}()
	select {
	case err := <-running.Err():
		return err
	case <-ended:
		running.Close()
		return nil
	}
}

// postgresFolder has the programs of Debian's release that is the newest here.
func postgresFolder() (string, error) {
	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err == nil && len(folders) == 0 {
		err = errors.New("PostgreSQL is not installed: e2e/setup.sh installs it")
	}
	if err != nil {
		return "", err
	}
	return slices.Max(folders), nil
}

func (s *server) postgres(ctx context.Context) error {
	folder, err := postgresFolder()
	if err != nil {
		return err
	}
	host, err := freeHost()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return err
	}
	attributes := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // as whom it does not run
		other, err := user.Lookup("nobody")
		if err != nil {
			return err
		}
		id, err := strconv.Atoi(other.Uid)
		if err != nil {
			return err
		}
		if err := os.Chown(s.directory, id, id); err != nil {
			return err
		}
		attributes.Credential = &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}
	}
	run := func(name string, arguments ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, filepath.Join(folder, name), arguments...)
		command.Dir, command.SysProcAttr = s.directory, attributes
		return command
	}
	data := filepath.Join(s.directory, "data")
	made := run("initdb", "--pgdata="+data, "--username=owner", "--auth=trust", "--encoding=UTF8", "--locale=C")
	if output, err := made.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, output)
	}
	s.hosts, s.address, s.end = []string{host}, "postgres://owner@"+host+"/postgres?sslmode=disable", syscall.SIGINT
	command := exec.Command(filepath.Join(folder, "postgres"), "-D", data, "-c", "port="+port, "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories="+s.directory)
	command.Dir, command.SysProcAttr = s.directory, attributes
	return s.launch(command)
}

// listens waits until all hosts of a server take connections, and those of PostgreSQL sessions.
func (s *server) listens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for _, host := range s.hosts {
		for {
			if s.takes(ctx, host) {
				break
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				log, err := os.ReadFile(s.directory + ".log")
				return errors.Join(fmt.Errorf("nobody listens at %s: %w; it said: %s", host, ctx.Err(), log), err)
			}
		}
	}
	return nil
}

func (s *server) takes(ctx context.Context, host string) bool {
	if s.name == "PostgreSQL" {
		folder, err := postgresFolder()
		_, port, _ := net.SplitHostPort(host)
		return err == nil && exec.CommandContext(ctx, filepath.Join(folder, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", port).Run() == nil
	}
	connection, err := net.Dial("tcp", host)
	return err == nil && connection.Close() == nil
}

// stop ends a server, and waits until it has.
func (s *server) stop() error {
	var all error
	for _, input := range s.input {
		all = errors.Join(all, input.Close())
	}
	for _, process := range s.processes {
		if s.end != nil {
			all = errors.Join(all, process.Process.Signal(s.end))
		}
		late := time.AfterFunc(startPatience, func() { _ = process.Process.Kill() }) // Wait says so
		all = errors.Join(all, process.Wait())
		late.Stop()
	}
	s.input, s.processes = nil, nil
	return all
}

// ticks is how many of the processor time that /proc tells of are in a second; Linux has no other number.
const ticks = 100

// use is what the processes of a server have used up and have.
type use struct {
	processor time.Duration
	memory    int64 // bytes; what processes share is counted once
}

// use adds up all processes of a server, also those that have ended.
func (s *server) use() (total use, err error) {
	family := map[int]bool{}
	for _, process := range s.processes {
		family[process.Process.Pid] = true
	}
	if len(family) == 0 {
		return total, nil
	}
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return total, err
	}
	for grown := true; grown; {
		grown = false
		for _, folder := range folders {
			pid, err := strconv.Atoi(filepath.Base(folder))
			if err != nil || family[pid] {
				continue
			}
			if fields := status(folder); len(fields) > 1 {
				if parent, err := strconv.Atoi(fields[1]); err == nil && family[parent] {
					family[pid], grown = true, true
				}
			}
		}
	}
	for pid := range family {
		folder := fmt.Sprint("/proc/", pid)
		fields := status(folder)
		if len(fields) < 15 {
			continue // it has ended, and its parent has what it used
		}
		for _, field := range fields[11:15] { // utime, stime, and those of children that have ended
			spent, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return total, fmt.Errorf("reading the processor time of %d: %w", pid, err)
			}
			total.processor += time.Duration(spent) * time.Second / ticks
		}
		rollup, err := os.ReadFile(folder + "/smaps_rollup")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return total, err
		}
		kilobytes, err := field(rollup, "Pss:")
		if err != nil {
			return total, err
		}
		total.memory += kilobytes << 10
	}
	return total, nil
}

// status is what /proc says of a process after its name: state, parent and more; nil where there is none.
func status(folder string) []string {
	text, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// field is a number of a file that has one in each line, after its name.
func field(text []byte, name string) (int64, error) {
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			return strconv.ParseInt(fields[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("there is no %s", name)
}

// onDisk is how many bytes the files of a server take.
func (s *server) onDisk() (total int64, err error) {
	err = filepath.WalkDir(s.directory, func(_ string, entry os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // a server removes files of its own
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if status, is := info.Sys().(*syscall.Stat_t); is {
			total += status.Blocks * 512
		}
		return nil
	})
	return total, err
}

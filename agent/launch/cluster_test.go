package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const patience = 20 * time.Second

func start(t *testing.T, options Options) *Cluster {
	t.Helper()
	if options.Directory == "" {
		options.Directory = t.TempDir()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cluster, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// until polls a fact about other processes, which have no channel to tell it.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s: not so after %s", what, patience)
		}
	}
}

// gone reports whether a process ended; one that nobody has waited for yet counts as ended.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(state, "Z")
}

func listens(address string) bool {
	connection, err := net.Dial("tcp", address)
	return err == nil && connection.Close() == nil
}

func TestEveryStoreKindComesUpAndLeavesNothing(t *testing.T) {
	for _, kind := range []StoreKind{StoreFile, StoreMemcached, StoreRedis} {
		t.Run(string(kind), func(t *testing.T) {
			cluster := start(t, Options{Store: kind, Agents: 3})
			want := 4
			if kind != StoreFile {
				want = 7
			}
			pids := cluster.Pids()
			if len(pids) != want {
				t.Fatalf("%d processes %v, want %d", len(pids), pids, want)
			}
			for _, member := range cluster.Members() {
				if !listens(member.Address) {
					t.Errorf("agent %s does not listen on %s", member.ID, member.Address)
				}
				if !strings.HasPrefix(member.Store, string(kind)+":") {
					t.Errorf("store of %s is %s", member.ID, member.Store)
				}
			}
			if !listens(cluster.Gateway()) {
				t.Errorf("the gateway does not listen on %s", cluster.Gateway())
			}
			if err := cluster.Stop(); err != nil {
				t.Fatal(err)
			}
			for name, pid := range pids {
				if !gone(pid) {
					t.Errorf("%s (%d) still runs", name, pid)
				}
			}
		})
	}
}

func TestKilledProcessComesBackUnderItsAddress(t *testing.T) {
	cluster := start(t, Options{Store: StoreRedis, Agents: 2})
	for _, name := range []string{"n1", "n1-store", GatewayName} {
		before := cluster.Pids()[name]
		if err := cluster.Kill(name); err != nil {
			t.Fatal(err)
		}
		if !gone(before) {
			t.Fatalf("%s (%d) still runs after Kill", name, before)
		}
		if err := cluster.Restart(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		p := cluster.processes[name]
		if after := p.pid(); after == before || after == 0 {
			t.Errorf("%s: process %d before, %d after", name, before, after)
		}
		if !listens(p.address) {
			t.Errorf("%s does not listen on %s again", name, p.address)
		}
	}
}

func TestHaltedProcessStaysDownUntilRestart(t *testing.T) {
	cluster := start(t, Options{Agents: 2})
	if err := cluster.Halt("n2"); err != nil {
		t.Fatal(err)
	}
	if pid := cluster.Pids()["n2"]; pid != 0 {
		t.Fatalf("n2 runs as %d", pid)
	}
	if listens(cluster.Members()[1].Address) {
		t.Fatal("somebody listens for n2")
	}
	if err := cluster.Halt("n2"); err != nil {
		t.Fatalf("halting twice: %v", err)
	}
	if err := cluster.Restart(t.Context(), "n2"); err != nil {
		t.Fatal(err)
	}
	if !listens(cluster.Members()[1].Address) {
		t.Fatal("n2 does not listen again")
	}
	if err := cluster.Kill("n9"); !errors.Is(err, ErrNoProcess) {
		t.Errorf("killing n9: %v", err)
	}
}

func TestStopWhileAProcessIsHaltedOrRestarting(t *testing.T) {
	cluster := start(t, Options{Agents: 3})
	if err := cluster.Halt("n1"); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Kill("n2"); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range cluster.Pids() {
		if pid != 0 {
			t.Errorf("%s runs as %d", name, pid)
		}
	}
}

func TestNothingOutlivesAKilledLauncher(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "launcher", t.TempDir(), string(StoreMemcached))
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var pids map[string]int
	if err := json.NewDecoder(output).Decode(&pids); err != nil {
		t.Fatal(err)
	}
	if len(pids) != 5 {
		t.Errorf("processes %v, want 5", pids)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err == nil {
		t.Error("the launcher ended without a signal")
	}
	for name, pid := range pids {
		until(t, name+" follows its launcher", func() bool { return gone(pid) })
	}
}

func TestSecondStartFindsTheSameAddresses(t *testing.T) {
	directory := t.TempDir()
	first := start(t, Options{Directory: directory, Agents: 2})
	members, gateway := first.Members(), first.Gateway()
	if _, err := Start(t.Context(), Options{Directory: directory, Agents: 2}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second launcher: %v", err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Directory: directory, Agents: 3}); !errors.Is(err, ErrOtherShape) {
		t.Errorf("another shape: %v", err)
	}
	second := start(t, Options{Directory: directory}) // as many as there were
	if second.Gateway() != gateway {
		t.Errorf("gateway at %s, was %s", second.Gateway(), gateway)
	}
	for i, member := range second.Members() {
		if member != members[i] {
			t.Errorf("member %v, was %v", member, members[i])
		}
	}
}

// A class file is made for a ladder in a new directory, and never in place of what is there.
func TestALadderIsForNewDirectories(t *testing.T) {
	directory := t.TempDir()
	classes := func() string {
		text, err := os.ReadFile(filepath.Join(directory, "classes.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := start(t, Options{Directory: directory, Agents: 2, Ladder: "rep(2)"})
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	before := classes()
	if !strings.Contains(before, `ladder: "rep(2)"`) {
		t.Errorf("the classes are %s", before)
	}
	start(t, Options{Directory: directory, Agents: 2, Ladder: "rep(1)"})
	if after := classes(); after != before {
		t.Errorf("started again, the classes are %s", after)
	}
}

func TestTakenAddresses(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if _, err := Start(t.Context(), Options{Directory: t.TempDir(), Agents: 1, Listen: busy.Addr().String()}); !errors.Is(err, ErrAddressBusy) {
		t.Errorf("a gateway on a taken address: %v", err)
	}
	// An agent whose recorded address was taken meanwhile moves.
	directory := t.TempDir()
	recorded := shape{Version: shapeVersion, Store: StoreFile, Agents: 1, Addresses: map[string]string{"n1": busy.Addr().String()}}
	if err := recorded.save(directory); err != nil {
		t.Fatal(err)
	}
	cluster := start(t, Options{Directory: directory, Agents: 1})
	if cluster.Members()[0].Address == busy.Addr().String() {
		t.Error("the agent claims a taken address")
	}
}

func TestEarlyDeathTellsWhy(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "broken")
	_, err := Start(t.Context(), Options{Directory: directory, Agents: 1})
	if err == nil || !strings.Contains(err.Error(), "the store is broken") || !strings.Contains(err.Error(), "n1.log") {
		t.Errorf("want the log's last line and path, have: %v", err)
	}
}

func TestMissingProgramNamesThePackage(t *testing.T) {
	_, err := program{"no-such-server", "no-such-package"}.find()
	if !errors.Is(err, ErrNoProgram) || !strings.Contains(err.Error(), "apt-get install no-such-package") {
		t.Error(err)
	}
}

func TestForeignServerIsNotTakenForOurs(t *testing.T) {
	cluster := start(t, Options{Store: StoreMemcached, Agents: 1})
	server := cluster.processes["n1-store"]
	if err := probeMemcached(t.Context(), server.address, server.pid()+1); !errors.Is(err, errForeign) {
		t.Errorf("have %v", err)
	}
}

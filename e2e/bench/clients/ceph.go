//go:build linux && ceph

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/restripe/restripe/agent/store/ceph/cephtest"
)

// buildTags are what this program is run with.
const buildTags = "-tags ceph "

const (
	cephPlacementGroups = 32        // of the pool of objects
	cephCache           = 256 << 20 // of each OSD; a fifth of it is for data, of which there are 16 MiB and what was overwritten
)

// startCeph starts a gateway of Ceph for S3 over a cluster with an OSD for each block of s3Scheme; a reason where it is not installed.
func (b *bench) startCeph(ctx context.Context, folder string) (_ *s3Server, reason string, err error) {
	for _, program := range []string{"radosgw", "radosgw-admin", "ceph-mon", "ceph-mgr", "ceph-osd", "ceph-authtool", "monmaptool"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Sprintf("%s is not among them: %s was not installed (`e2e/bench/clients/setup.sh` does).", cephName, program), nil
		}
	}
	b.say("starting Ceph: %d OSDs, BlueStore, and a gateway for S3", s3Data+s3Parity)
	directory := filepath.Join(folder, "ceph")
	if err := os.Mkdir(directory, 0o755); err != nil {
		return nil, "", err
	}
	earlier, err := descendants(os.Getpid())
	if err != nil {
		return nil, "", err
	}
	cluster, err := cephtest.Launch(ctx, directory, cephtest.Options{
		Hosts: s3Data + s3Parity, Bluestore: true, CacheBytes: cephCache,
	})
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, cluster.Stop())
		}
	}()
	daemons, err := descendants(os.Getpid())
	if err != nil {
		return nil, "", err
	}
	daemons = slices.DeleteFunc(daemons, func(pid int) bool { return slices.Contains(earlier, pid) })
	for _, command := range []struct {
		prefix    string
		arguments map[string]any
	}{
		{"osd erasure-code-profile set", map[string]any{"name": "objects", "profile": []string{
			fmt.Sprintf("k=%d", s3Data), fmt.Sprintf("m=%d", s3Parity), "crush-failure-domain=host",
		}}},
		{"osd pool create", map[string]any{
			"pool": "default.rgw.buckets.data", "pg_num": cephPlacementGroups, "pgp_num": cephPlacementGroups, "pool_type": "erasure",
			"erasure_code_profile": "objects",
		}},
		{"osd pool application enable", map[string]any{"pool": "default.rgw.buckets.data", "app": "rgw"}},
	} {
		if _, err := cluster.Command(command.prefix, command.arguments); err != nil {
			return nil, "", err
		}
	}
	if err := cluster.AwaitServing(); err != nil {
		return nil, "", err
	}
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	address := net.JoinHostPort("127.0.0.1", port)
	common := []string{"-c", cluster.Config(), "--name", "client.admin", "--keyring", cluster.Keyring(), "--run-dir", directory}
	user := exec.CommandContext(ctx, "radosgw-admin", append(common, "user", "create", "--uid", s3Key, "--display-name", s3Key,
		"--access-key", s3Key, "--secret", s3Secret)...)
	if output, err := user.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("making a user of Ceph's gateway: %w: %s", err, output)
	}
	log, err := os.Create(filepath.Join(directory, "radosgw.out"))
	if err != nil {
		return nil, "", err
	}
	gateway := exec.Command("radosgw", append(common, "-f", "--rgw-frontends", "beast endpoint="+address,
		"--rgw-data", directory, "--log-file", filepath.Join(directory, "radosgw.log"))...)
	gateway.Stdout, gateway.Stderr = log, log
	if err := errors.Join(gateway.Start(), log.Close()); err != nil {
		return nil, "", fmt.Errorf("starting radosgw: %w", err)
	}
	server := &s3Server{
		name: cephName, address: address, front: gateway.Process.Pid, others: daemons,
		stop: func() error { return errors.Join(ended(gateway), cluster.Stop()) },
	}
	return server, "", nil
}

// ended ends a process with SIGTERM and waits for it.
func ended(command *exec.Cmd) error {
	err := command.Process.Signal(syscall.SIGTERM)
	_ = command.Wait() // how it ended says nothing
	return err
}

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Files of the write-ahead log are laid out whole when they are begun, two of them. The log of a control plane fits a
// smaller one than etcd's 64 MB.
func init() { wal.SegmentSizeBytes = 8 << 20 }

// slow is how long a request takes that etcd warns of: its own limits are for the disks of servers.
const slow = 5 * time.Second

// member is an etcd of one member.
type member struct {
	*embed.Etcd
	level zap.AtomicLevel
}

// close returns when the files of etcd are closed.
func (m *member) close() {
	m.level.SetLevel(whileEnding)
	m.Close()
}

// startEtcd starts a member and returns when it serves. It has no peers, and so no address for them.
func startEtcd(ctx context.Context, state *directory, logger *slog.Logger) (*member, error) {
	configuration := embed.NewConfig()
	configuration.Dir = state.etcd()
	log, level := memberLog(logger)
	configuration.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	socket, err := url.Parse(state.etcdURL())
	if err != nil {
		return nil, fmt.Errorf("naming the socket of etcd: %w", err)
	}
	configuration.ListenClientUrls, configuration.AdvertiseClientUrls = []url.URL{*socket}, []url.URL{*socket}
	configuration.ListenPeerUrls = nil
	configuration.WarningApplyDuration, configuration.WarningUnaryRequestDuration = slow, slow
	configuration.InitialCluster = configuration.InitialClusterFromName(configuration.Name)
	if err := awaitLog(ctx, configuration.Dir); err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	etcd, err := tryEtcd(configuration)
	if err != nil {
		return nil, err
	}
	m := &member{Etcd: etcd, level: level}
	select {
	case <-etcd.Server.ReadyNotify():
		level.SetLevel(whileRunning)
		return m, nil
	case err = <-etcd.Err():
	case <-etcd.Server.StopNotify():
		err = errors.New("it stopped by itself")
	case <-ctx.Done():
		err = ctx.Err()
	}
	m.close()
	return nil, fmt.Errorf("starting etcd: %w", err)
}

// logPatience is how long the log of an etcd that has ended may be held: what holds it is about to execute a program.
const logPatience = 10 * time.Second

// awaitLog waits until nobody holds the files of the write-ahead log of the etcd in a directory, as etcd itself does not.
// No other server has them, as the state directory is locked; but a child that was being forked when etcd closed them has
// them, and with them their locks, until it executes its program.
func awaitLog(ctx context.Context, directory string) error {
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	files, err := filepath.Glob(filepath.Join(directory, "member", "wal", "*.wal"))
	if err != nil {
		return fmt.Errorf("looking for the log of etcd: %w", err)
	}
	for _, file := range files {
		err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
			err := tryLog(file)
			if errors.Is(err, fileutil.ErrLocked) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("waiting for who holds %s, part of the log of etcd: %w: stop that process", file, err)
		}
	}
	return nil
}

// tryLog takes the lock of a file and gives it back, while no child can be forked that would keep it.
func tryLog(file string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	lock, err := fileutil.TryLockFile(file, os.O_RDWR, fileutil.PrivateFileMode)
	if err != nil {
		return err
	}
	return lock.Close()
}

// tryEtcd makes an error of the panic that is etcd's answer to state that it cannot read.
func tryEtcd(configuration *embed.Config) (etcd *embed.Etcd, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("starting etcd: it cannot read its state in %s: restore it from a copy, or move it away to begin with nothing (%v)", configuration.Dir, cause)
		}
	}()
	if etcd, err = embed.StartEtcd(configuration); err != nil {
		return nil, fmt.Errorf("starting etcd in %s: %w", configuration.Dir, err)
	}
	return etcd, nil
}

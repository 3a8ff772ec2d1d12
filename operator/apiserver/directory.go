package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/flock"
)

// directory is the state directory of a server, held by a lock that ends with the process.
type directory struct {
	path string
	lock *os.File
}

// longestSocket is how long the path of a socket can be on every system.
const longestSocket = 100

// openDirectory makes the directory, for this user alone, and takes it.
func openDirectory(path string) (*directory, error) {
	if path == "" {
		return nil, errors.New("an API server needs a directory for its state")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("naming the directory of the API server: %w", err)
	}
	d := &directory{path: path}
	if length := len(d.socket()); length > longestSocket {
		return nil, fmt.Errorf("the path of the socket %s is %d bytes long, and a socket can have %d: give a directory with a shorter path", d.socket(), length, longestSocket)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the API server: %w", err)
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return nil, fmt.Errorf("closing %s to others: %w", path, err)
	}
	if d.lock, err = os.OpenFile(d.file("lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("locking the directory of the API server: %w", err)
	}
	if err := flock.Take(d.lock); err != nil {
		refused := fmt.Errorf("locking %s: %w: keep the state on a local file system", path, err)
		if errors.Is(err, flock.ErrHeld) {
			refused = fmt.Errorf("%w %s: %s; stop that, or give another directory", ErrInUse, path, ownerOf(d.lock))
		}
		return nil, errors.Join(refused, d.lock.Close())
	}
	// For the message above; the lock does not depend on it.
	if err := d.write("lock", fmt.Appendf(nil, "%d\n", os.Getpid()), inPlace); err != nil {
		return nil, errors.Join(err, flock.Release(d.lock))
	}
	return d, nil
}

func ownerOf(lock *os.File) string {
	content := make([]byte, 32)
	count, err := lock.ReadAt(content, 0)
	if owner := strings.TrimSpace(string(content[:count])); owner != "" {
		return "it is process " + owner
	}
	return fmt.Sprintf("which process is not known (%v)", err)
}

func (d *directory) file(name string) string { return filepath.Join(d.path, name) }
func (d *directory) kubeconfig() string      { return d.file("kubeconfig") }
func (d *directory) etcd() string            { return d.file("etcd") }
func (d *directory) socket() string          { return d.file("etcd.sock") }
func (d *directory) etcdURL() string         { return "unix://" + d.socket() }

// whole names the file that tells that the state of etcd is that of a server that once was ready. It lies in the folder
// of etcd, so that the two are copied together.
func (d *directory) whole() string { return filepath.Join("etcd", "whole") }

// discardTornState removes what a server left behind that was killed while it started for the first time, when nobody
// can have stored anything, but etcd may have stopped at a point from which it does not start.
func (d *directory) discardTornState() error {
	_, err := os.Stat(d.file(d.whole()))
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for the state of etcd: %w", err)
	}
	if err := os.RemoveAll(d.etcd()); err != nil {
		return fmt.Errorf("removing the state of a start that was broken off: %w", err)
	}
	return nil
}

// markWhole tells the next start that the state is to be kept.
func (d *directory) markWhole() error { return d.write(d.whole(), nil, replaced) }

// listen takes the port of the last time if none is asked for, or else any, and remembers it.
func (d *directory) listen(ctx context.Context, address *net.TCPAddr, logger *slog.Logger) (net.Listener, error) {
	var configuration net.ListenConfig
	if last := d.lastPort(); address.Port == 0 && last != 0 {
		again := &net.TCPAddr{IP: address.IP, Port: last, Zone: address.Zone}
		listener, err := configuration.Listen(ctx, "tcp", again.String())
		if err == nil {
			return listener, nil
		}
		logger.Warn("the API server cannot have the port of the last time and takes another: clients have to read the kubeconfig again",
			"port", last, "kubeconfig", d.kubeconfig(), "cause", err)
	}
	listener, err := configuration.Listen(ctx, "tcp", address.String())
	if err != nil {
		return nil, fmt.Errorf("%w: stop who has the address, or give another one", err)
	}
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	if err := d.write("port", []byte(port+"\n"), replaced); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// lastPort returns 0 if there was none, or none that can be read: any other is as good.
func (d *directory) lastPort() int {
	text, err := os.ReadFile(d.file("port"))
	if err != nil {
		return 0
	}
	port, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16)
	if err != nil {
		return 0
	}
	return int(port)
}

func (d *directory) close() error {
	if err := flock.Release(d.lock); err != nil {
		return fmt.Errorf("unlocking %s: %w", d.path, err)
	}
	return nil
}

// writing is how a file gets its content.
type writing bool

const (
	inPlace  writing = false
	replaced writing = true // whole or not at all, also if the machine stops
)

// write gives a file of the directory its content, for this user alone.
func (d *directory) write(name string, content []byte, how writing) error {
	path := d.file(name)
	if how == inPlace {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
		return nil
	}
	staged, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = staged.Write(content)
	if err = errors.Join(err, staged.Sync(), staged.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	return nil
}

package launch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/restripe/restripe/agent/atomicfile"
	"github.com/restripe/restripe/agent/flock"
)

// shape is what is kept of a cluster between two starts.
type shape struct {
	Version   int               `json:"version"`
	Store     StoreKind         `json:"store"`
	Agents    int               `json:"agents"`
	Pools     []string          `json:"pools,omitempty"` // of Ceph: that of n1, n2, ...
	Addresses map[string]string `json:"addresses"`       // by name of process
}

const (
	shapeVersion = 1
	shapeFile    = "cluster.json"
)

// loadShape reads what was launched in the directory before and refuses options that differ from it. fresh says that nothing was.
func loadShape(options Options) (s *shape, fresh bool, err error) {
	path := filepath.Join(options.Directory, shapeFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		s = &shape{Version: shapeVersion, Store: options.Store, Agents: cmp.Or(options.Agents, DefaultAgents), Addresses: map[string]string{}}
		if options.Store == StoreCeph {
			s.Pools = options.Ceph.names()
		}
		return s, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the shape of the cluster: %w", err)
	}
	s = &shape{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", path, err)
	}
	if s.Version != shapeVersion {
		return nil, false, fmt.Errorf("%w: %s has version %d, this program knows %d: use the program that wrote it, or another directory", ErrOtherShape, path, s.Version, shapeVersion)
	}
	if s.Store != options.Store || options.Agents != 0 && s.Agents != options.Agents {
		return nil, false, fmt.Errorf("%w: %s has %d agents over %s, asked for are %d over %s: ask for the same, or give another directory",
			ErrOtherShape, options.Directory, s.Agents, s.Store, cmp.Or(options.Agents, s.Agents), options.Store)
	}
	if s.Store == StoreCeph {
		if err := options.Ceph.order(options.Directory, s.Pools); err != nil {
			return nil, false, err
		}
	}
	if s.Addresses == nil {
		s.Addresses = map[string]string{}
	}
	return s, false, nil
}

func (s *shape) save(directory string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("recording the shape of the cluster: %w", err)
	}
	return atomicfile.Write(filepath.Join(directory, shapeFile), append(text, '\n'))
}

// lockDirectory takes the directory for this launcher; the lock ends with the process that holds it.
func lockDirectory(directory string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(directory, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the state directory: %w", err)
	}
	if err := flock.Take(lock); err != nil {
		refused := fmt.Errorf("%w: %s: stop it, or give another directory", ErrInUse, directory)
		if !errors.Is(err, flock.ErrHeld) {
			refused = fmt.Errorf("locking %s: %w", directory, err)
		}
		return nil, errors.Join(refused, lock.Close())
	}
	return lock, nil
}

// self makes commands that run this program with the arguments, an address to listen on, and an end when their standard
// input closes.
func (c *Cluster) self(arguments ...string) func(address string) *exec.Cmd {
	return func(address string) *exec.Cmd {
		all := append(append([]string{}, arguments...), "--listen", address, "--"+LifelineFlag)
		command := exec.Command(c.options.Binary, all...)
		command.Dir = c.options.Directory
		return command
	}
}

// LifelineFlag is the flag of agents and gateways that makes them leave when their standard input closes.
const LifelineFlag = "lifeline"

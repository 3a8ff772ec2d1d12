package ceph

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Options say which pool of which cluster to use, and as whom. Pool is required.
type Options struct {
	Pool    string
	Config  string        // path of ceph.conf; default /etc/ceph/ceph.conf
	Keyring string        // path of the user's keyring; empty: where the configuration says
	User    string        // without "client."; default restripe
	Timeout time.Duration // after which an OSD or the monitors count as down, in whole seconds; default rados_osd_op_timeout of Config, else 10 s
}

const (
	defaultConfig  = "/etc/ceph/ceph.conf"
	defaultUser    = "restripe"
	defaultTimeout = 10 * time.Second

	// Application is what pools of Restripe are tagged with.
	Application = "restripe"
)

// ErrNotBuilt is returned by a program that was built without librados.
var ErrNotBuilt = errors.New("this restripe was built without Ceph; build with -tags ceph")

// ErrPool is wrapped where a pool cannot be a node; the error says why, and what to do.
var ErrPool = errors.New("pool cannot be a node")

// ErrConfig is wrapped where the configuration file or the keyring cannot be used.
var ErrConfig = errors.New("configuration of Ceph cannot be used")

// complete sets defaults and checks what can be checked without Ceph.
func (o *Options) complete() error {
	if o.Config == "" {
		o.Config = defaultConfig
	}
	if o.User = strings.TrimPrefix(o.User, "client."); o.User == "" {
		o.User = defaultUser
	}
	for what, name := range map[string]string{"the configuration": o.Config, "the keyring": o.Keyring} {
		if name == "" {
			continue
		}
		file, err := os.Open(name)
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			return fmt.Errorf("%w: reading %s of Ceph: %w; give the right path, readable by the user the agent runs as", ErrConfig, what, err)
		}
	}
	return nil
}

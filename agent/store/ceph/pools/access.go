package pools

import (
	"errors"
	"time"
)

// Access says how to reach a cluster.
type Access struct {
	Config  string        // path of ceph.conf; default: where librados looks
	Keyring string        // path of the user's keyring; default: what the configuration says
	User    string        // without "client."; default admin
	Timeout time.Duration // of every operation; default DefaultTimeout
}

// DefaultTimeout is long enough for an OSD that is busy, and short enough for people who wait for an answer.
const DefaultTimeout = 15 * time.Second

// ErrWithoutCeph is returned by every attempt to reach a cluster where the program lacks what that takes.
var ErrWithoutCeph = errors.New("this restripe was built without Ceph; build with -tags ceph")

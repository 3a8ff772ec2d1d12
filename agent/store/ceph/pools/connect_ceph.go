//go:build ceph

package pools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ceph/go-ceph/rados"
)

func (a *Access) complete() {
	a.User = cmp.Or(strings.TrimPrefix(a.User, "client."), "admin")
	a.Timeout = cmp.Or(a.Timeout, DefaultTimeout)
}

// shownConfig names the configuration for people.
func (a *Access) shownConfig() string { return cmp.Or(a.Config, "the default ceph.conf") }

// secondsText is a duration as options of Ceph take it.
func secondsText(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// Connection is a connection to a cluster, and a Monitor. It is safe for concurrent use.
type Connection struct {
	conn   *rados.Conn
	client Client
	close  sync.Once
}

// Connect opens a connection. It does not wait for longer than the time-out. The caller closes it.
func Connect(ctx context.Context, access Access) (*Connection, error) {
	access.complete()
	c, err := configured(access)
	if err != nil {
		return nil, fmt.Errorf("connecting to Ceph as client.%s with %s: %w", access.User, access.shownConfig(), err)
	}
	opened := make(chan error, 1)
	go func() { opened <- c.conn.Connect() }()
	select {
	case err = <-opened:
	case <-ctx.Done():
		// librados gives up by itself; what it has opened until then is let go.
		go func() {
			if <-opened == nil {
				c.Close()
			}
		}()
		return nil, fmt.Errorf("connecting to Ceph: %w", ctx.Err())
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to Ceph as client.%s with %s: %w; %s", access.User, access.shownConfig(), err, cureOf(err))
	}
	return c, nil
}

// configured reads the configuration, and gives an end to every wait that the configuration leaves without one.
func configured(access Access) (*Connection, error) {
	conn, err := rados.NewConnWithUser(access.User)
	if err != nil {
		return nil, err
	}
	c := &Connection{conn: conn}
	read := conn.ReadDefaultConfigFile
	if access.Config != "" {
		read = func() error { return conn.ReadConfigFile(access.Config) }
	}
	if err := read(); err != nil {
		return nil, fmt.Errorf("reading the configuration: %w; name a readable ceph.conf with --ceph-conf", err)
	}
	options := map[string]string{"client_mount_timeout": secondsText(access.Timeout)}
	if access.Keyring != "" {
		options["keyring"] = access.Keyring
	}
	for _, option := range []string{"rados_osd_op_timeout", "rados_mon_op_timeout"} {
		if !c.bounded(option) {
			options[option] = secondsText(access.Timeout)
		}
	}
	for option, value := range options {
		if err := conn.SetConfigOption(option, value); err != nil {
			return nil, fmt.Errorf("setting %s to %s: %w", option, value, err)
		}
	}
	c.client = Client{OSDTimeout: c.bounded("rados_osd_op_timeout"), MonitorTimeout: c.bounded("rados_mon_op_timeout")}
	return c, nil
}

// bounded reports whether an option that is a time-out has a value that ends.
func (c *Connection) bounded(option string) bool {
	value, err := c.conn.GetConfigOption(option)
	if err != nil {
		return false
	}
	number, err := strconv.ParseFloat(value, 64)
	return err == nil && number > 0
}

// cureOf says what to do about an error of connecting.
func cureOf(err error) string {
	switch errorCode(err) {
	case syscall.ENOENT, syscall.ENOTSUP:
		return "no key was found for this user: name the keyring with --keyring, and the user with --ceph-user"
	case syscall.EACCES, syscall.EPERM:
		return "the monitors know another key or no such user: see `ceph auth get`, and name the keyring with --keyring"
	case syscall.ETIMEDOUT:
		return "no monitor answered in time: see whether mon host in ceph.conf is right and a majority of monitors runs"
	}
	return "see whether mon host in ceph.conf is right"
}

// errorCode returns the code of errno.h of an error of librados; 0 if it has none.
func errorCode(err error) syscall.Errno {
	var coded interface{ ErrorCode() int }
	if !errors.As(err, &coded) {
		return 0
	}
	return syscall.Errno(-coded.ErrorCode())
}

// Command carries out a command of the monitors.
func (c *Connection) Command(ctx context.Context, command []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	output, message, err := c.conn.MonCommand(command)
	switch code := errorCode(err); {
	case err == nil:
		return output, nil
	case code == syscall.ETIMEDOUT:
		return nil, fmt.Errorf("%w: no monitor answered in time; a majority of them must run", err)
	case code == syscall.EACCES:
		return nil, &CommandError{Code: int(code), Message: "this user lacks the capability for it; use client.admin or another user with mon 'allow *'"}
	default:
		return nil, &CommandError{Code: int(code), Message: message}
	}
}

// Client describes this side of the connection.
func (c *Connection) Client() Client { return c.client }

// HasObjects returns, by name of pool, at least 1 for each that holds an object in any namespace, and 0 for the others.
func (c *Connection) HasObjects(ctx context.Context, names []string) (map[string]int64, error) {
	found := map[string]int64{}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.hasObject(name, found); err != nil {
			return nil, fmt.Errorf("looking whether the pool %s is empty: %w", name, err)
		}
	}
	return found, nil
}

func (c *Connection) hasObject(name string, found map[string]int64) error {
	io, err := c.conn.OpenIOContext(name)
	if err != nil {
		return err
	}
	defer io.Destroy()
	io.SetNamespace(rados.AllNamespaces)
	objects, err := io.Iter()
	if err != nil {
		return err
	}
	defer objects.Close()
	if objects.Next() {
		found[name] = 1
	}
	return objects.Err()
}

// Rados returns the connection of librados, for those who store objects. It ends with Close.
func (c *Connection) Rados() *rados.Conn { return c.conn }

// Close ends the connection. It may be called again.
func (c *Connection) Close() { c.close.Do(c.conn.Shutdown) }

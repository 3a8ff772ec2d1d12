//go:build !ceph

package pools

import "context"

// Connection would be a connection to a cluster; this program makes none.
type Connection struct{}

// Connect fails with ErrWithoutCeph.
func Connect(context.Context, Access) (*Connection, error) { return nil, ErrWithoutCeph }

// Command fails with ErrWithoutCeph.
func (c *Connection) Command(context.Context, []byte) ([]byte, error) { return nil, ErrWithoutCeph }

// Client describes nothing.
func (c *Connection) Client() Client { return Client{} }

// HasObjects fails with ErrWithoutCeph.
func (c *Connection) HasObjects(context.Context, []string) (map[string]int64, error) {
	return nil, ErrWithoutCeph
}

// Close does nothing.
func (c *Connection) Close() {}

package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/dustin/go-humanize"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// What members have to take in one transaction and one request. An Update has one operation more than it has records, where it tells of
// keys; its request has the keys of counters twice, and what each record is wrapped in.
const (
	MemberOperations = 2 * kv.UpdateRecords
	MemberBytes      = 2*kv.UpdateBytes + 2<<20
)

// overheadBytes is what members receive beyond what they take as a request.
const overheadBytes = 512 << 10

// fullAt is the part of its quota that a database is warned of.
const fullAt = 0.6

// MayLose implements kv.Forgetful: what was acknowledged is on the disks of most members.
func (e *Engine) MayLose() bool { return false }

// Warnings returns whole sentences about the cluster as it was at Open, and the cure.
func (e *Engine) Warnings() []string { return slices.Clone(e.warnings) }

func (e *Engine) warn(format string, arguments ...any) {
	e.warnings = append(e.warnings, fmt.Sprintf("The catalog %s ", e.location)+fmt.Sprintf(format, arguments...))
}

// errUnbelieved says that members do not believe the certificate of this side, or want one.
var errUnbelieved = errors.New("its members do not accept who asks")

// reach reports why none of the hosts can be connected with, nil where one can; the client would wait without saying.
func reach(ctx context.Context, hosts []string, secured *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	answers := make(chan error, len(hosts))
	for _, host := range hosts {
		go func() { answers <- reachOne(ctx, host, secured) }()
	}
	var all error
	for range hosts {
		err := <-answers
		if err == nil {
			return nil
		}
		all = errors.Join(all, err)
	}
	return all
}

// greeting is how a client of HTTP/2 begins, with settings of which there are none.
const greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// reachOne connects with one host. Whether that accepts the certificate of this side is not known before it has answered.
func reachOne(ctx context.Context, host string, secured *tls.Config) (err error) {
	if secured == nil {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
		if err != nil {
			return err
		}
		return connection.Close()
	}
	secured = secured.Clone()
	secured.NextProtos = []string{"h2"}
	connection, err := (&tls.Dialer{Config: secured}).DialContext(ctx, "tcp", host)
	if err == nil {
		defer func() { _ = connection.Close() }() // nothing more is wanted of it
		if deadline, limited := ctx.Deadline(); limited {
			err = connection.SetDeadline(deadline)
		}
	}
	if err == nil {
		if _, err = connection.Write([]byte(greeting)); err == nil {
			_, err = connection.Read(make([]byte, 1))
		}
	}
	var said *net.OpError
	switch {
	case errors.As(err, &said) && said.Op == "remote error": // an alert of TLS
		return fmt.Errorf("%w: %w", errUnbelieved, err)
	case errors.Is(err, os.ErrDeadlineExceeded) && connection != nil:
		return nil // it has been reached, and the client will find out
	}
	return err
}

// inspect refuses a cluster that does not take what a catalog writes, and collects what the operator should know. What it asks are
// reads: they are answered where the database is full, and nothing of them is kept.
func (e *Engine) inspect(ctx context.Context) error {
	_, err := e.ask(ctx, "asking", slices.Repeat([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(e.told), "<", 0)}, MemberOperations))
	if err == nil {
		large := clientv3.Compare(clientv3.Value(e.told), "=", strings.Repeat("x", MemberBytes+overheadBytes-1<<10))
		_, err = e.ask(ctx, "asking", []clientv3.Cmp{large})
	}
	if isTooLarge(err) {
		return fmt.Errorf("opening the catalog %s: its members take less than an update may have: start each of them with "+
			"--max-txn-ops=%d --max-request-bytes=%d (%w)", e.location, MemberOperations, MemberBytes, err)
	}
	if err != nil {
		return err
	}
	if err := e.inspectMembers(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	switch members, err := e.client.MemberList(limited); {
	case err != nil:
		e.warn("does not say how many members it has: %v", err)
	case len(members.Members) == 1:
		e.warn("has one member: it stops with it, and is lost with its disk. Have three.")
	case len(members.Members) == 2:
		e.warn("has two members: it stops if either does. Have three.")
	}
	return nil
}

// state is what a member says about itself.
type state struct {
	*clientv3.StatusResponse
	host string
	err  error
}

// states asks all members that the address names.
func (e *Engine) states(ctx context.Context) []state {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	states := make([]state, len(e.hosts))
	var all sync.WaitGroup
	for i, endpoint := range e.client.Endpoints() {
		all.Go(func() {
			answer, err := e.client.Status(ctx, endpoint)
			states[i] = state{answer, e.hosts[i], err}
		})
	}
	all.Wait()
	return states
}

// inspectMembers refuses a cluster whose members differ, and looks how full they are.
func (e *Engine) inspectMembers(ctx context.Context) error {
	for _, is := range e.states(ctx) {
		if is.err != nil {
			e.warn("has a member that does not answer, %s: %v", is.host, is.err)
			continue
		}
		alarms := strings.Join(is.Errors, " ")
		if strings.Contains(alarms, "CORRUPT") {
			return fmt.Errorf("opening the catalog %s: its members do not have the same data: see etcdctl alarm list, replace the member "+
				"that differs, then etcdctl alarm disarm", e.location)
		}
		used := fmt.Sprintf("%s of the %s", humanize.IBytes(uint64(is.DbSize)), humanize.IBytes(uint64(is.DbSizeQuota)))
		switch {
		case strings.Contains(alarms, "NOSPACE"):
			e.warn("is full and can be read only: its member %s has used %s that it may: compact it (etcdctl compact REVISION), then etcdctl "+
				"defrag on each member, or raise --quota-backend-bytes, then etcdctl alarm disarm.", is.host, used)
		case is.DbSizeQuota > 0 && float64(is.DbSize) > fullAt*float64(is.DbSizeQuota):
			e.warn("is soon full: its member %s has used %s that it may: see that it is compacted (--auto-compaction-retention), "+
				"defragment it (etcdctl defrag), or raise --quota-backend-bytes.", is.host, used)
		}
	}
	return nil
}

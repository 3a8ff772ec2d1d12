package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// callLimit is how long one call is waited for, however long its context lasts; askAgain, after how long it is asked again.
const (
	callLimit = 20 * time.Second
	askAgain  = 25 * time.Millisecond
)

// errSilent says that nobody answered within callLimit.
var errSilent = fmt.Errorf("no answer within %s", callLimit)

// ask has reads made where conditions hold, of which there may be none; again and again until they are answered.
func (e *Engine) ask(ctx context.Context, doing string, conditions []clientv3.Cmp, reads ...clientv3.Op) (*clientv3.TxnResponse, error) {
	return e.call(ctx, doing, mayReadAgain, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return e.client.Txn(ctx).If(conditions...).Then(reads...).Commit()
	})
}

// call does what do does, again where its error allows it. Members are to refuse what they cannot do for want of a leader.
func (e *Engine) call(
	ctx context.Context, doing string, again func(error) bool, do func(context.Context) (*clientv3.TxnResponse, error),
) (*clientv3.TxnResponse, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	limited, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), callLimit)
	defer cancel()
	for {
		answer, err := do(limited)
		if err == nil {
			return answer, nil
		}
		if again(err) {
			select {
			case <-time.After(askAgain):
				e.retries[kv.RetryUnavailable].Add(1)
				continue
			case <-limited.Done():
			}
		}
		why := error(nil)
		switch {
		case e.closed.Load():
			why = kv.ErrClosed
		case ctx.Err() != nil:
			why = ctx.Err()
		case limited.Err() != nil:
			why = errSilent
		}
		if why != nil && !errors.Is(err, why) {
			err = fmt.Errorf("%w: %w", why, err)
		}
		return nil, fmt.Errorf("%s the catalog %s: %w%s", doing, e.location, err, cure(err))
	}
}

// mayReadAgain reports whether what is asked again may be answered.
func mayReadAgain(err error) bool {
	return status.Code(err) == codes.Unavailable || codeOf(err) == codes.Unavailable || isUndone(err)
}

// codeOf is the code of an error of etcd, which its client has taken out of one of gRPC.
func codeOf(err error) codes.Code {
	var said rpctypes.EtcdError
	if errors.As(err, &said) {
		return said.Code()
	}
	return codes.OK
}

// isUndone reports whether a member said that it had not even begun, for a reason that passes.
func isUndone(err error) bool {
	refusals := []error{rpctypes.ErrNoLeader, rpctypes.ErrTooManyRequests, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision}
	return slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}

// isTooLarge reports whether a request was refused for its size, by etcd or by what it is sent or received with.
func isTooLarge(err error) bool {
	return errors.Is(err, rpctypes.ErrRequestTooLarge) || errors.Is(err, rpctypes.ErrTooManyOps) ||
		status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}

// cure says what to do about an error, where that is known.
func cure(err error) string {
	var unverified *tls.CertificateVerificationError
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return "; the database of its members is full, and can be read only: compact it (etcdctl compact REVISION), then etcdctl defrag " +
			"on each member, or raise --quota-backend-bytes, then etcdctl alarm disarm"
	case errors.Is(err, rpctypes.ErrCorrupt):
		return "; its members do not have the same data: see etcdctl alarm list, replace the member that differs, then etcdctl alarm disarm"
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrPermissionDenied), errors.Is(err, rpctypes.ErrUserEmpty):
		return "; give the user and the password of a role that may read and write what begins with restripe/ and its name"
	case errors.As(err, &unverified):
		return "; name with cacert= the authority of their certificates"
	case errors.Is(err, errUnbelieved):
		return "; name with cert= and key= a certificate of an authority that they trust"
	case errors.Is(err, errSilent):
		return "; see that most of its members run, have a leader (etcdctl endpoint status) and are reachable from here"
	}
	return ""
}

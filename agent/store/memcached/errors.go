package memcached

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/restripe/restripe/agent/store"
)

// refusal turns an answer that is an error, or that does not fit the question, into an error. memcached has no error
// numbers: what it says of memory and size is told apart by its words (memcached.c, proto_text.c).
func refusal(r reply) error {
	switch r.status {
	case statusError:
		return fmt.Errorf("server knows no such command: %w", errProtocol)
	case statusClientError, statusServerError:
		message := strings.ToLower(r.message)
		switch {
		case strings.HasPrefix(message, "out of memory"):
			return fmt.Errorf("server says %q: %w", r.message, store.ErrFull)
		case strings.HasPrefix(message, "object too large"):
			return fmt.Errorf("server says %q: %w", r.message, store.ErrTooLarge)
		case strings.HasPrefix(message, "unauthenticated"):
			return fmt.Errorf("server says %q, and SASL is not supported: %w", r.message, store.ErrAuth)
		}
		if r.status == statusClientError {
			return fmt.Errorf("server refuses the request with %q: %w", r.message, errProtocol)
		}
		return fmt.Errorf("server says %q", r.message)
	}
	return fmt.Errorf("unexpected answer %s: %w", r.status, errProtocol)
}

// unreachable says that the server at address cannot be talked to, unless it is the caller who gave up.
func unreachable(ctx context.Context, address string, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if errors.Is(err, errProtocol) || store.Definite(err) {
		return fmt.Errorf("memcached at %s: %w", address, err)
	}
	return fmt.Errorf("memcached at %s: %w: %w", address, store.ErrDown, err)
}

package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/store"
)

// codes maps the first word of a Redis error, which is its code, to the sentinel it stands for.
var codes = map[string]error{
	"OOM":         store.ErrFull,
	"NOAUTH":      store.ErrAuth,
	"WRONGPASS":   store.ErrAuth,
	"NOPERM":      store.ErrAuth,
	"READONLY":    store.ErrReadOnly,
	"MISCONF":     store.ErrReadOnly,
	"NOREPLICAS":  store.ErrReadOnly,
	"WRONGTYPE":   store.ErrCorrupt,
	"LOADING":     store.ErrDown,
	"MASTERDOWN":  store.ErrDown,
	"CLUSTERDOWN": store.ErrDown,
}

// classify adds the sentinel that an error of the client or the server stands for.
func classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if answer, isAnswer := rueidis.IsRedisErr(err); isAnswer {
		code, _, _ := strings.Cut(answer.Error(), " ")
		if sentinel, known := codes[code]; known {
			return fmt.Errorf("%w: %w", sentinel, err)
		}
		// Servers before Redis 6 have no code for a wrong password, or for one that none was asked for.
		if strings.HasPrefix(answer.Error(), "ERR invalid password") || strings.HasPrefix(answer.Error(), "ERR Client sent AUTH") ||
			strings.HasPrefix(answer.Error(), "ERR AUTH") {
			return fmt.Errorf("%w: %w", store.ErrAuth, err)
		}
		return err
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if errors.Is(err, store.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrDown, err)
}

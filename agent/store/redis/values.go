package redis

import (
	"cmp"
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/store"
)

// Create implements store.Store.
func (s *Store) Create(ctx context.Context, key string, value []byte) error {
	if err := s.checkValue(ctx, key, value); err != nil {
		return err
	}
	if err := created(ctx, s.client.Do(ctx, s.set(key, value))); err != nil {
		return fmt.Errorf("creating %q in %s: %w", key, s.location, err)
	}
	return nil
}

// CreateBetween implements store.Between.
func (s *Store) CreateBetween(ctx context.Context, marker string, limit int, key string, value []byte) (before, after []byte, err error) {
	if err := s.checkValue(ctx, key, value); err != nil {
		return nil, nil, err
	}
	read := func() rueidis.Completed {
		return s.client.B().Getrange().Key(keyPrefix + marker).Start(0).End(int64(limit) - 1).Build()
	}
	answers := s.client.DoMulti(ctx, read(), s.set(key, value), read())
	before, err = answers[0].AsBytes()
	if err == nil {
		after, err = answers[2].AsBytes()
	}
	if err = cmp.Or(created(ctx, answers[1]), classify(ctx, err)); err != nil {
		return nil, nil, fmt.Errorf("creating %q in %s: %w", key, s.location, err)
	}
	return before, after, nil
}

// checkValue refuses what cannot be created.
func (s *Store) checkValue(ctx context.Context, key string, value []byte) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("creating %q in %s: %w", key, s.location, err)
	}
	if len(value) > valueLimit {
		return fmt.Errorf("creating %q in %s: %d bytes, limit %d: %w", key, s.location, len(value), valueLimit, store.ErrTooLarge)
	}
	return nil
}

// set is the command that creates a value. Its copy is what makes "value is not retained" true: the client may still be sending after
// ctx has ended.
func (s *Store) set(key string, value []byte) rueidis.Completed {
	return s.client.B().Set().Key(keyPrefix + key).Value(string(value)).Nx().Build()
}

// created is what became of it.
func created(ctx context.Context, answer rueidis.RedisResult) error {
	err := answer.Error()
	if rueidis.IsRedisNil(err) {
		return store.ErrExists
	}
	return classify(ctx, err)
}

// sizeScript tells an absent key from an empty value in one step: -1 for the former, else the length.
var sizeScript = rueidis.NewLuaScript(`if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end return redis.call('STRLEN', KEYS[1])`)

// ReadAt implements store.Store.
func (s *Store) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	if err := store.CheckRead(key, offset); err != nil {
		return 0, err
	}
	count, err := s.readAt(ctx, keyPrefix+key, p, offset)
	if err != nil {
		return 0, fmt.Errorf("reading %q in %s: %w", key, s.location, err)
	}
	return count, nil
}

// ReadMany implements store.ManyReader, with all commands in one write.
func (s *Store) ReadMany(ctx context.Context, reads []store.Read) {
	commands, asked := make(rueidis.Commands, 0, len(reads)), make([]*store.Read, 0, len(reads))
	for i := range reads {
		r := &reads[i]
		if store.CheckRead(r.Key, r.Offset) != nil || ctx.Err() != nil || len(r.Into) == 0 || r.Offset >= valueLimit {
			r.Count, r.Err = s.ReadAt(ctx, r.Key, r.Into, r.Offset)
			continue
		}
		commands = append(commands, s.client.B().Getrange().Key(keyPrefix+r.Key).Start(r.Offset).End(r.Offset+int64(len(r.Into))-1).Build())
		asked = append(asked, r)
	}
	for i, answer := range s.client.DoMulti(ctx, commands...) {
		r := asked[i]
		switch content, err := answer.ToString(); {
		case err != nil:
			r.Count, r.Err = 0, fmt.Errorf("reading %q in %s: %w", r.Key, s.location, classify(ctx, err))
		case content == "": // nothing is there, or nothing from there on
			r.Count, r.Err = s.ReadAt(ctx, r.Key, r.Into, r.Offset)
		default:
			r.Count, r.Err = copy(r.Into, content), nil
		}
	}
}

func (s *Store) readAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if len(p) > 0 && offset < valueLimit {
			get := s.client.B().Getrange().Key(key).Start(offset).End(offset + int64(len(p)) - 1).Build()
			content, err := s.client.Do(ctx, get).ToString()
			if err != nil {
				return 0, classify(ctx, err)
			}
			if len(content) > 0 { // less than asked for is the end: values do not change
				return copy(p, content), nil
			}
		}
		size, err := sizeScript.Exec(ctx, s.client, []string{key}, nil).AsInt64()
		switch {
		case err != nil:
			return 0, classify(ctx, err)
		case size < 0:
			return 0, store.ErrNotFound
		case size <= offset || len(p) == 0:
			return 0, nil
		}
		// The value was created between the two commands.
	}
}

// Delete implements store.Store. The server frees the memory in the background.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("deleting %q in %s: %w", key, s.location, err)
	}
	err := s.client.Do(ctx, s.client.B().Unlink().Key(keyPrefix+key).Build()).Error()
	if err != nil {
		return fmt.Errorf("deleting %q in %s: %w", key, s.location, classify(ctx, err))
	}
	return nil
}

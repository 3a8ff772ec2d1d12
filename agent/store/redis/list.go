package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// scanCount is how many keys the server looks at in one step of a listing.
const scanCount = 512

// List implements store.Lister. It remembers the keys it has shown, about 150 bytes of memory for each, since Redis
// may name a key twice while its table grows.
func (s *Store) List(ctx context.Context, prefix string, visit func(key string, size int64) error) error {
	shown := map[string]struct{}{}
	return s.scan(ctx, prefix, func(keys []string) error { return s.visitStep(ctx, prefix, keys, shown, visit) })
}

// Page implements store.Lister, in key order. Where Redis is in a listing depends on a table that it makes anew as it grows
// and shrinks, and on a secret of its run, so that no key says it, and a listing is one pass.
func (s *Store) Page(ctx context.Context, prefix, after string, limit int) (keys []string, more bool, err error) {
	return s.pass.Page(ctx, prefix, after, limit)
}

// all returns the keys that begin with prefix, some perhaps twice.
func (s *Store) all(ctx context.Context, prefix string) (all []string, err error) {
	err = s.scan(ctx, prefix, func(keys []string) error {
		for _, key := range keys {
			if len(key) > len(keyPrefix) {
				all = append(all, strings.TrimPrefix(key, keyPrefix))
			}
		}
		return nil
	})
	return all, err
}

// there returns those of the keys that are there.
func (s *Store) there(ctx context.Context, keys []string) (there []string, err error) {
	questions := make(rueidis.Commands, len(keys))
	for i, key := range keys {
		questions[i] = s.client.B().Exists().Key(keyPrefix + key).Build()
	}
	for i, answer := range s.client.DoMulti(ctx, questions...) {
		found, err := answer.AsInt64()
		if err != nil {
			return nil, fmt.Errorf("listing keys in %s: %w", s.location, classify(ctx, err))
		}
		if found > 0 {
			there = append(there, keys[i])
		}
	}
	return there, nil
}

// scan visits the names of the values whose keys begin with prefix, some perhaps twice, in steps.
func (s *Store) scan(ctx context.Context, prefix string, visit func(keys []string) error) error {
	pattern := escapePattern(keyPrefix+prefix) + "*"
	var cursor uint64
	for {
		step, err := s.client.Do(ctx, s.client.B().Scan().Cursor(cursor).Match(pattern).Count(scanCount).Build()).AsScanEntry()
		if err != nil {
			return fmt.Errorf("listing %q in %s: %w", prefix, s.location, classify(ctx, err))
		}
		if err := visit(step.Elements); err != nil {
			return err
		}
		if cursor = step.Cursor; cursor == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("listing %q in %s: %w", prefix, s.location, err)
		}
	}
}

// visitStep shows the keys of one step that were not shown before.
func (s *Store) visitStep(ctx context.Context, prefix string, keys []string, shown map[string]struct{}, visit func(key string, size int64) error) error {
	var fresh []string
	var questions rueidis.Commands
	for _, key := range keys {
		if _, found := shown[key]; found || len(key) == len(keyPrefix) {
			continue
		}
		shown[key] = struct{}{}
		fresh = append(fresh, key)
		questions = append(questions, s.client.B().Exists().Key(key).Build(), s.client.B().Strlen().Key(key).Build())
	}
	if len(fresh) == 0 {
		return nil
	}
	answers := s.client.DoMulti(ctx, questions...)
	for i, key := range fresh {
		found, err := answers[2*i].AsInt64()
		if err != nil {
			return fmt.Errorf("listing %q in %s: %w", prefix, s.location, classify(ctx, err))
		}
		size, err := answers[2*i+1].AsInt64()
		if err != nil {
			return fmt.Errorf("listing %q in %s: %w", prefix, s.location, classify(ctx, err))
		}
		if found == 0 { // deleted meanwhile
			continue
		}
		if err := visit(strings.TrimPrefix(key, keyPrefix), size); err != nil {
			return err
		}
	}
	return nil
}

// escapePattern makes text match itself in a pattern of SCAN.
func escapePattern(text string) string {
	var escaped strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`*?[]^-\`, text[i]) >= 0 {
			escaped.WriteByte('\\')
		}
		escaped.WriteByte(text[i])
	}
	return escaped.String()
}

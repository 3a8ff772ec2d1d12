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
	pattern := escapePattern(keyPrefix+prefix) + "*"
	var cursor uint64
	for {
		step, err := s.client.Do(ctx, s.client.B().Scan().Cursor(cursor).Match(pattern).Count(scanCount).Build()).AsScanEntry()
		if err != nil {
			return fmt.Errorf("listing %q in %s: %w", prefix, s.location, classify(ctx, err))
		}
		if err := s.visitStep(ctx, prefix, step.Elements, shown, visit); err != nil {
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

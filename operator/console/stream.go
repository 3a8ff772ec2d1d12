package console

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"

	"github.com/restripe/restripe/operator/console/signal"
)

// heartbeat is after how long without a change a watch says nevertheless that it is alive.
const heartbeat = 10 * time.Second

// pageLimit is how many items a message of a watch has.
const pageLimit = 500

// item is one thing of a list, with what tells it from the others.
type item[M proto.Message] struct {
	key  string
	view M
}

// picture is what a watch shows at a moment.
type picture[M proto.Message] struct {
	items   []item[M]
	sources []*consolev1.Source
}

// delta is one message of a watch.
type delta[M proto.Message] struct {
	whole, partial bool
	items          []M
	removed        []string
	sources        []*consolev1.Source
}

// watchList sends a picture, and then what differs from it whenever something changed, until the context ends.
func watchList[M proto.Message](ctx context.Context, s *watching, take func() picture[M], send func(delta[M]) error) error {
	known := map[string]M{}
	var sources []*consolev1.Source
	first := true
	return s.everyChange(ctx, func(beat bool) error {
		now := take()
		changes := difference(known, now.items)
		changes.whole = first
		if !first && !beat && len(changes.items)+len(changes.removed) == 0 && sameSources(sources, now.sources) {
			return nil
		}
		sources, changes.sources, first = now.sources, now.sources, false
		for len(changes.items) > pageLimit {
			part := delta[M]{whole: changes.whole, partial: true, items: changes.items[:pageLimit], sources: now.sources}
			if err := send(part); err != nil {
				return err
			}
			changes.items, changes.whole = changes.items[pageLimit:], false
		}
		return send(changes)
	})
}

// difference brings what is known up to date and returns what was new, other or gone.
func difference[M proto.Message](known map[string]M, items []item[M]) (d delta[M]) {
	there := make(map[string]struct{}, len(items))
	for _, one := range items {
		there[one.key] = struct{}{}
		if before, is := known[one.key]; is && (any(before) == any(one.view) || proto.Equal(before, one.view)) {
			continue
		}
		known[one.key] = one.view
		d.items = append(d.items, one.view)
	}
	for key := range known {
		if _, is := there[key]; !is {
			delete(known, key)
			d.removed = append(d.removed, key)
		}
	}
	return d
}

// watchOne sends a view, and then every other one that follows, until the context ends. same compares views.
func watchOne[M proto.Message](ctx context.Context, s *watching, take func() M, same func(a, b M) bool, send func(M) error) error {
	var last M
	first := true
	return s.everyChange(ctx, func(beat bool) error {
		now := take()
		if !first && !beat && same(last, now) {
			return nil
		}
		last, first = now, false
		return send(now)
	})
}

// watching paces those who watch.
type watching struct {
	changed *signal.Signal // something that a view shows changed
	pace    time.Duration  // least time between two messages
}

// everyChange calls step at once, and then after changes, no oftener than the stream interval; with beat when nothing
// changed for a heartbeat.
func (s *watching) everyChange(ctx context.Context, step func(beat bool) error) error {
	beats := time.NewTicker(heartbeat)
	defer beats.Stop()
	for beat := false; ; {
		changed := s.changed.Wait()
		if err := step(beat); err != nil {
			return err
		}
		signal.Pause(ctx, s.pace)
		select {
		case <-changed:
			beat = false
		case <-beats.C:
			beat = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

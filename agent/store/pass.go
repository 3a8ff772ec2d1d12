package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// passKept is how long the keys of a pass are kept for a listing that does not go on.
const passKept = time.Minute

// Pass makes Lister.Page of a server that names its keys only all together. It keeps the keys that one pass over the server
// found, in their order, for the pages that follow: memory for each key, about 150 bytes, until the listing ends or pauses
// for a minute. The zero Pass is ready; it must not be copied.
type Pass struct {
	// All returns the keys on the server that begin with prefix, in any order and some perhaps twice; the caller gives them away.
	All func(ctx context.Context, prefix string) ([]string, error)
	// There returns those of the keys that are on the server now, in their order.
	There func(ctx context.Context, keys []string) ([]string, error)

	mutex  sync.Mutex
	prefix string
	keys   []string    // nil: none are kept
	drop   *time.Timer // forgets them
}

// Page is Lister.Page in the order of the keys. A listing that begins passes over the server, so that it shows what there is.
func (p *Pass) Page(ctx context.Context, prefix, after string, limit int) (page []string, more bool, err error) {
	for more = true; more && len(page) < limit; {
		if err := ctx.Err(); err != nil {
			return nil, false, fmt.Errorf("listing %q: %w", prefix, err)
		}
		left, err := p.left(ctx, prefix, after)
		if err != nil {
			return nil, false, err
		}
		asked := left[:min(len(left), limit-len(page))]
		there, err := p.There(ctx, asked)
		if err != nil {
			return nil, false, err
		}
		page = append(page, there...)
		if more = len(left) > len(asked); more {
			after = asked[len(asked)-1]
		}
	}
	if !more {
		p.Forget()
	}
	return page, more, nil
}

// left returns the keys after another, from those kept or, where there are none or a listing begins, from the server.
func (p *Pass) left(ctx context.Context, prefix, after string) ([]string, error) {
	keys := p.kept(prefix)
	if after == "" || keys == nil {
		var err error
		if keys, err = p.All(ctx, prefix); err != nil {
			return nil, err
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
		p.keep(prefix, keys)
	}
	from, found := slices.BinarySearch(keys, after)
	if found {
		from++
	}
	return keys[from:], nil
}

func (p *Pass) kept(prefix string) []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.keys == nil || p.prefix != prefix {
		return nil
	}
	p.drop.Reset(passKept)
	return p.keys
}

func (p *Pass) keep(prefix string, keys []string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.prefix, p.keys = prefix, keys
	if p.drop == nil {
		p.drop = time.AfterFunc(passKept, p.Forget)
	}
	p.drop.Reset(passKept)
}

// Forget gives up what is kept; a listing that goes on passes over the server again.
func (p *Pass) Forget() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.keys = nil
	if p.drop != nil {
		p.drop.Stop()
	}
}

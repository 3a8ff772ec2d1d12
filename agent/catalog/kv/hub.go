package kv

import (
	"context"
	"slices"
	"sync"
)

// Hub tells those who watch keys, within one process. Engines use it for Watch: its zero value is ready.
type Hub struct {
	mu       sync.Mutex
	watchers map[*watcher]bool
	deaf     bool
	closed   bool
}

type watcher struct {
	keys   []string
	tokens chan struct{}
}

// give leaves a token, if there is none. The caller holds the hub's mu, under which the channel is closed.
func (w *watcher) give() {
	select {
	case w.tokens <- struct{}{}:
	default:
	}
}

// Watch implements Engine.Watch. The first token is there at once, unless the hub is deaf.
func (h *Hub) Watch(ctx context.Context, keys ...string) <-chan struct{} {
	w := &watcher{keys: slices.Clone(keys), tokens: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || ctx.Err() != nil {
		close(w.tokens)
		return w.tokens
	}
	if h.watchers == nil {
		h.watchers = map[*watcher]bool{}
	}
	h.watchers[w] = true
	if !h.deaf {
		w.give()
	}
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.watchers[w] {
			delete(h.watchers, w)
			close(w.tokens)
		}
	})
	return w.tokens
}

// Told gives tokens to those who watch key.
func (h *Hub) Told(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		if slices.Contains(w.keys, key) {
			w.give()
		}
	}
}

// Made gives tokens to those who watch what an Update has told of.
func (h *Hub) Made(writes []Write) {
	for i := range writes {
		if writes[i].Notify {
			h.Told(writes[i].Key)
		}
	}
}

// Deafen says that nothing is heard of other processes, until Hears: tokens are given then.
func (h *Hub) Deafen() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deaf = true
}

// Hears gives tokens to all, for something may have been missed until now.
func (h *Hub) Hears() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deaf = false
	for w := range h.watchers {
		w.give()
	}
}

// Close closes all channels.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for w := range h.watchers {
		close(w.tokens)
	}
	h.watchers = nil
}

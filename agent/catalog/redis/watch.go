package redis

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// againAfter is how long a subscription that ended is not begun anew.
const againAfter = 200 * time.Millisecond

// Watch implements kv.Engine. All watches share one subscription, which the first begins.
func (e *Engine) Watch(ctx context.Context, keys ...string) <-chan struct{} {
	e.listen.Do(func() { go e.hear(e.hearing) })
	return e.hub.Watch(ctx, keys...)
}

// hear keeps a subscription until ctx ends.
func (e *Engine) hear(ctx context.Context) {
	subscribed := rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" {
			e.hub.Hears()
		}
	})
	for ctx.Err() == nil {
		// Its error says that the connection ended; whoever reads or writes learns why.
		_ = e.client.Receive(subscribed, e.client.B().Subscribe().Channel(e.channel).Build(), func(message rueidis.PubSubMessage) {
			e.hub.Told(message.Message)
		})
		e.hub.Deafen()
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}

package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/restripe/restripe/operator/decide"
)

// estimateCaches are what policies need not be told twice. Losing them costs calls and nothing else.
type estimateCaches struct {
	mutex sync.Mutex
	all   map[types.UID]*estimateCache
}

// estimateCache belongs to whoever reconciles the policy.
type estimateCache struct {
	heatAt    time.Time
	estimates map[string]decide.Estimate
	written   time.Time // of the status
}

// of returns the cache of a policy; estimates of an earlier heat report are forgotten where the time is given.
func (c *estimateCaches) of(policy types.UID, heatAt time.Time) *estimateCache {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.all == nil {
		c.all = map[types.UID]*estimateCache{}
	}
	found := c.all[policy]
	if found == nil {
		found = &estimateCache{}
		c.all[policy] = found
	}
	if !heatAt.IsZero() && !found.heatAt.Equal(heatAt) || found.estimates == nil {
		found.heatAt, found.estimates = heatAt, map[string]decide.Estimate{}
	}
	return found
}

func (c *estimateCaches) forget(policy types.UID) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.all, policy)
}

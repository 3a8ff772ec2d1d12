package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/restripe/restripe/operator/decide"
)

// memos are what policies need not be told twice. Losing them costs calls and nothing else.
type memos struct {
	mutex sync.Mutex
	all   map[types.UID]*memo
}

// memo belongs to whoever reconciles the policy.
type memo struct {
	heatAt    time.Time
	estimates map[string]decide.Estimate
	written   time.Time // of the status
}

// of returns the memo of a policy; estimates of an earlier heat report are forgotten where the time is given.
func (m *memos) of(policy types.UID, heatAt time.Time) *memo {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.all == nil {
		m.all = map[types.UID]*memo{}
	}
	found := m.all[policy]
	if found == nil {
		found = &memo{}
		m.all[policy] = found
	}
	if !heatAt.IsZero() && !found.heatAt.Equal(heatAt) || found.estimates == nil {
		found.heatAt, found.estimates = heatAt, map[string]decide.Estimate{}
	}
	return found
}

func (m *memos) forget(policy types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.all, policy)
}

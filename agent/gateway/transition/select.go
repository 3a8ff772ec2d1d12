package transition

import (
	"cmp"
	"context"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// selection says which groups of a class a transition takes.
type selection struct {
	class   string
	from    string // scheme; empty: any but to
	to      string
	atLeast float64 // accesses a day
	below   float64
	settled time.Duration
}

func selectionOf(t *api.Transition, to stripe.Scheme) *selection {
	s := &selection{class: t.Selector.Class, from: t.From, to: to.String(), below: math.Inf(1), settled: seconds(t.SettledSeconds)}
	if t.HeatAtLeast != nil {
		s.atLeast = *t.HeatAtLeast
	}
	if t.HeatBelow != nil {
		s.below = *t.HeatBelow
	}
	return s
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// covers reports whether groups under a scheme are selected, heat and dwell apart.
func (s *selection) covers(scheme string) bool {
	return scheme != s.to && (s.from == "" || scheme == s.from)
}

// byHeat reports whether heat matters.
func (s *selection) byHeat() bool { return s.atLeast > 0 || !math.IsInf(s.below, 1) }

// selects judges a group of the selection's class as of now.
func (j *Coordinator) selects(s *selection, group *catalog.GroupSummary) bool {
	if !s.covers(group.Scheme) {
		return false
	}
	now := j.now()
	if !j.heat.IsSettled(group.Settled, s.settled, now) {
		return false
	}
	if !s.byHeat() {
		return true
	}
	heat := j.heat.HeatOf(s.class, group.ID, now)
	return heat >= s.atLeast && heat < s.below && !j.heat.HoldsHotKeys(group)
}

// maxConcurrency bounds the groups of one transition under way at once.
const maxConcurrency = 64

var transitionID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// transitionOf is what a request asks for, as far as the request alone can be judged.
func transitionOf(r *api.TransitionRequest) (t api.Transition, to stripe.Scheme, err error) {
	name := "" // of the scheme
	if r.Into == "" {
		if to, err = stripe.ParseScheme(r.To); err != nil {
			return t, to, api.Refuse(api.ErrBadRequest, "to: %w", err)
		}
		name = to.String()
	}
	if r.ID != "" && !transitionID.MatchString(r.ID) {
		return t, to, api.Refuse(api.ErrBadRequest, "id %.140q: want 1 to 128 letters, digits, dots, dashes and underscores, the first a letter or digit", r.ID)
	}
	t = api.Transition{
		ID: r.ID, Selector: r.Selector, To: name, Into: r.Into,
		HeatAtLeast: r.HeatAtLeast, HeatBelow: r.HeatBelow, SettledSeconds: r.SettledSeconds,
		Planner: cmp.Or(r.Planner, stripe.PlannerRestripe), Objective: cmp.Or(r.Objective, string(stripe.LeastNetwork)), Proxy: r.Proxy,
		BytesPerSecond: r.BytesPerSecond, NodeBytesPerSecond: r.NodeBytesPerSecond, DomainBytesPerSecond: r.DomainBytesPerSecond,
		Concurrency: cmp.Or(r.Concurrency, jobConcurrency), State: api.TransitionRunning, Started: time.Now().UTC(), ETASeconds: -1,
		Baselines: map[string]int64{},
	}
	if r.From != "" {
		from, err := stripe.ParseScheme(r.From)
		if err != nil {
			return t, to, api.Refuse(api.ErrBadRequest, "from: %w", err)
		}
		if from == to {
			return t, to, api.Refuse(api.ErrBadRequest, "from and to are both %s; nothing would change", to)
		}
		t.From = from.String()
	}
	return t, to, checkBounds(&t)
}

// checkBounds refuses numbers that make no sense.
func checkBounds(t *api.Transition) error {
	for name, bound := range map[string]*float64{"heatAtLeast": t.HeatAtLeast, "heatBelow": t.HeatBelow, "settledSeconds": &t.SettledSeconds} {
		if bound != nil && !(*bound >= 0 && *bound <= math.MaxInt64/1e9) {
			return api.Refuse(api.ErrBadRequest, "%s is %v; give a number from 0 to %.0f", name, *bound, math.Floor(math.MaxInt64/1e9))
		}
	}
	if t.HeatAtLeast != nil && t.HeatBelow != nil && *t.HeatAtLeast >= *t.HeatBelow {
		return api.Refuse(api.ErrBadRequest, "no heat is at least %v and below %v", *t.HeatAtLeast, *t.HeatBelow)
	}
	for name, rate := range map[string]int64{"bytesPerSecond": t.BytesPerSecond, "nodeBytesPerSecond": t.NodeBytesPerSecond, "domainBytesPerSecond": t.DomainBytesPerSecond} {
		if rate < 0 {
			return api.Refuse(api.ErrBadRequest, "%s: a rate of %d bytes per second; give a positive one, or 0 for no limit", name, rate)
		}
	}
	if t.Concurrency < 1 || t.Concurrency > maxConcurrency {
		return api.Refuse(api.ErrBadRequest, "concurrency is %d; give 1 to %d, or 0 for %d", t.Concurrency, maxConcurrency, jobConcurrency)
	}
	if !slices.Contains(stripe.Planners(), t.Planner) {
		return api.Refuse(api.ErrBadRequest, "there is no planner %q; the planners are %s", t.Planner, strings.Join(stripe.Planners(), ", "))
	}
	if !slices.Contains(stripe.Objectives(), stripe.Objective(t.Objective)) {
		return api.Refuse(api.ErrBadRequest, "there is no objective %q; the objectives are network, reads, bottleneck", t.Objective)
	}
	if t.Selector.Class == "" && (t.From != "" || t.HeatAtLeast != nil || t.HeatBelow != nil || t.SettledSeconds > 0) {
		return api.Refuse(api.ErrBadRequest, "from, heat bounds and settledSeconds choose among the groups of a class; select by class")
	}
	return nil
}

// isSame reports whether two transitions take the same groups to the same scheme by the same plan. Limits do not matter.
func isSame(t, other *api.Transition) bool {
	return reflect.DeepEqual(t.Selector, other.Selector) && t.From == other.From && t.To == other.To && t.Into == other.Into &&
		reflect.DeepEqual(t.HeatAtLeast, other.HeatAtLeast) && reflect.DeepEqual(t.HeatBelow, other.HeatBelow) &&
		t.SettledSeconds == other.SettledSeconds && t.Planner == other.Planner && t.Objective == other.Objective && t.Proxy == other.Proxy
}

// checkTransition judges a transition by the classes, objects and nodes there are.
func (j *Coordinator) checkTransition(ctx context.Context, t *api.Transition, to stripe.Scheme) error {
	if t.Proxy != "" {
		if _, err := j.agents.Get(block.NodeID(t.Proxy)); err != nil {
			return api.Refuse(api.ErrBadRequest, "proxy: %w", err)
		}
	}
	selectors := 0
	if t.Selector.Class != "" {
		selectors++
		class, err := j.classes.For("", t.Selector.Class)
		if err != nil {
			return err
		}
		if !class.Ladder.Contains(to) {
			return notOnLadder(class, to)
		}
	}
	if t.Selector.Key64 != "" {
		selectors++
		key, err := api.DecodeKey(t.Selector.Key64)
		if err != nil {
			return api.Refuse(api.ErrBadRequest, "key64: %w", err)
		}
		snapshot, err := j.catalog.Snapshot(ctx, key)
		if err != nil {
			return err
		}
		for _, group := range snapshot.Groups {
			ladder, err := stripe.ParseLadder(group.Ladder)
			if err == nil && !ladder.Contains(to) {
				_, err = j.ladderFor(group, to)
			}
			if err != nil {
				return err
			}
		}
	}
	if t.Selector.Prefix64 != nil {
		selectors++
		if _, err := api.DecodeKey(*t.Selector.Prefix64); err != nil {
			return api.Refuse(api.ErrBadRequest, "prefix64: %w", err)
		}
	}
	if selectors != 1 {
		return api.Refuse(api.ErrBadRequest, "a transition selects by exactly one of key, prefix and class; %d were given", selectors)
	}
	return nil
}

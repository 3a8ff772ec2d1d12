package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/replay"
)

// The ladder of the comparison, hottest first.
var ladder = stripe.Ladder{stripe.Replicas(3), stripe.RS(4, 2), stripe.RS(12, 2)}

// step is the clock's step, and how often heat is reported.
const step = time.Hour

// setting is the policy that is replayed.
type setting struct {
	days            float64
	hot, warm       float64 // accesses a day for the first and the second rung
	halfLife, dwell time.Duration
	networkDays     float64 // for how many days a byte could be stored for what sending it costs
}

// day is what was stored at the end of a day and moved until then.
type day struct{ stored, sent, written int64 }

// outcome is what became of a trace.
type outcome struct {
	name         string
	days         []day
	storedDays   float64 // bytes stored, summed over days
	sent         int64   // over the network by moves
	written      int64
	accesses     [3]int64 // by rung
	missCost     float64  // of accesses away from the first rung, in bytes stored for a day
	groups       int
	moves        int
	mostMoves    int
	returns      int           // back to the rung it came from
	flaps        int           // of those, within the dwell time, or with a heat that the rung it left would have kept
	shortestStay time.Duration // between two moves of a group
}

// costs are those of a move per byte of users, by rung.
type costs struct{ sent, written [3][3]float64 }

func planCosts() (costs, error) {
	var c costs
	layout, err := stripe.NewLayout(ladder, 0, stripe.ModeFree)
	if err != nil {
		return c, err
	}
	for from := range ladder {
		for to := range ladder {
			if from == to {
				continue
			}
			plan, err := stripe.NewPlan(layout, ladder[from], ladder[to], stripe.PlannerRestripe, stripe.LeastNetwork)
			if err != nil {
				return c, fmt.Errorf("planning %s to %s: %w", ladder[from], ladder[to], err)
			}
			c.sent[from][to] = float64(plan.Cost.BlocksSent) / float64(layout.Cells())
			c.written[from][to] = float64(plan.Cost.BlocksWritten) / float64(layout.Cells())
		}
	}
	return c, nil
}

// missPrice is what an access costs on each rung, in days of storing the group: at the policy's bounds it is worth as
// much as the storage that the next hotter rung takes more.
func (s *setting) missPrice() [3]float64 {
	warm := (ladder[0].Overhead() - ladder[1].Overhead()) / s.hot
	return [3]float64{0, warm, warm + (ladder[1].Overhead()-ladder[2].Overhead())/s.warm}
}

// declaration is the policy in the operator's words.
func (s *setting) declaration() (*decide.Declaration, error) {
	rate := func(value float64) *resource.Quantity {
		return resource.NewScaledQuantity(int64(value*1e6), resource.Micro)
	}
	policy := &v1alpha1.RedundancyPolicy{ObjectMeta: metav1.ObjectMeta{Name: "trace"}}
	policy.Spec = v1alpha1.RedundancyPolicySpec{
		BackendRef: "trace", Selector: v1alpha1.Selector{Prefixes: []string{""}},
		Temperature: &v1alpha1.Temperature{
			HalfLife: metav1.Duration{Duration: s.halfLife}, Dwell: metav1.Duration{Duration: s.dwell},
			Rules: []v1alpha1.TemperatureRule{
				{Scheme: v1alpha1.SchemeName(ladder[0].String()), AtLeast: rate(s.hot)},
				{Scheme: v1alpha1.SchemeName(ladder[1].String()), AtLeast: rate(s.warm)},
				{Scheme: v1alpha1.SchemeName(ladder[2].String()), Below: rate(s.warm)},
			},
		},
	}
	for _, scheme := range ladder {
		policy.Spec.Ladder = append(policy.Spec.Ladder, v1alpha1.SchemeName(scheme.String()))
	}
	declaration, wrong := decide.Declare(policy, nil, nil)
	if wrong != nil {
		return nil, wrong
	}
	return declaration, nil
}

// group is one object, or extent, under the policy.
type group struct {
	born     bool
	rung     int
	heat     float64
	changed  time.Duration
	moves    int
	from     int     // the rung before
	fromHeat float64 // when it left it
}

// replay is a trace under the policy.
type course struct {
	setting
	*replay.Trace
	costs       costs
	declaration *decide.Declaration
	groups      []group
	out         outcome
}

// steps is how many steps of the clock a setting has.
func (s *setting) steps() int {
	return int(math.Ceil(s.days * 24 * float64(time.Hour) / float64(step)))
}

func runPolicy(t *replay.Trace, s setting, c costs) (outcome, error) {
	declaration, err := s.declaration()
	if err != nil {
		return outcome{}, err
	}
	r := &course{setting: s, Trace: t, costs: c, declaration: declaration, groups: make([]group, len(t.Bytes))}
	r.out = outcome{name: "policy", groups: len(t.Bytes), shortestStay: time.Duration(math.MaxInt64)}
	next, prices := 0, s.missPrice()
	keep := math.Exp2(-step.Hours() / s.halfLife.Hours())
	perAccess := math.Ln2 / (s.halfLife.Hours() / 24)
	for i := range s.steps() {
		now := time.Duration(i+1) * step
		for j := range r.groups {
			r.groups[j].heat *= keep
		}
		for ; next < len(t.Accesses) && t.Accesses[next].At < now; next++ {
			g := &r.groups[t.Accesses[next].Group]
			if !g.born {
				g.born, g.changed = true, t.Accesses[next].At
			}
			g.heat += perAccess * math.Exp2(-(now-t.Accesses[next].At).Hours()/s.halfLife.Hours())
			r.out.accesses[g.rung]++
			r.out.missCost += prices[g.rung] * float64(t.Bytes[t.Accesses[next].Group])
		}
		r.move(now)
		r.account(i)
	}
	return r.out, nil
}

// move reports the heat and does what the operator decides.
func (r *course) move(now time.Duration) {
	class := &r.declaration.Class
	for _, m := range decide.Moves(decide.Place{Class: class, Rules: r.declaration.Rules, Heat: r.report(now)}) {
		from, to := slices.Index(ladder, m.From), slices.Index(ladder, m.To)
		for i := range r.groups {
			g := &r.groups[i]
			if !g.born || g.rung != from || g.heat < m.Heat.AtLeast || g.heat >= m.Heat.Below || now-g.changed < m.Settled {
				continue
			}
			r.note(g, to, now)
			r.out.sent += int64(r.costs.sent[from][to] * float64(r.Bytes[i]))
			r.out.written += int64(r.costs.written[from][to] * float64(r.Bytes[i]))
			g.from, g.fromHeat, g.rung, g.changed, g.moves = from, g.heat, to, now, g.moves+1
		}
	}
}

// note counts a move, and whether it is one that should not be.
func (r *course) note(g *group, to int, now time.Duration) {
	r.out.moves++
	r.out.mostMoves = max(r.out.mostMoves, g.moves+1)
	if g.moves == 0 {
		return
	}
	r.out.shortestStay = min(r.out.shortestStay, now-g.changed)
	if to != g.from {
		return
	}
	r.out.returns++
	low, high := r.bounds(to)
	if now-g.changed < r.dwell || g.fromHeat >= low && g.fromHeat < high {
		r.out.flaps++
	}
}

// bounds is the heat of a rung by the policy's rules.
func (r *course) bounds(rung int) (low, high float64) {
	edges := []float64{math.Inf(1), r.hot, r.warm, 0}
	return edges[rung+1], edges[rung]
}

// report is the heat report of the gateways.
func (r *course) report(now time.Duration) *decide.ClassHeat {
	heat := &decide.ClassHeat{Complete: true}
	for _, scheme := range ladder {
		rung := decide.RungHeat{Scheme: scheme, Buckets: []decide.HeatBucket{{Below: math.Ldexp(1, -6)}}}
		for exponent := -6; exponent < 20; exponent++ {
			rung.Buckets = append(rung.Buckets, decide.HeatBucket{AtLeast: math.Ldexp(1, exponent), Below: math.Ldexp(1, exponent+1)})
		}
		rung.Buckets = append(rung.Buckets, decide.HeatBucket{AtLeast: math.Ldexp(1, 20), Below: math.Inf(1)})
		heat.Rungs = append(heat.Rungs, rung)
	}
	for i := range r.groups {
		g := &r.groups[i]
		if !g.born {
			continue
		}
		rung := &heat.Rungs[g.rung]
		bucket := &rung.Buckets[bucketOf(g.heat)]
		rung.Groups, rung.Bytes = rung.Groups+1, rung.Bytes+r.Bytes[i]
		bucket.Groups, bucket.Bytes = bucket.Groups+1, bucket.Bytes+r.Bytes[i]
		if now-g.changed >= r.dwell {
			bucket.SettledGroups, bucket.SettledBytes = bucket.SettledGroups+1, bucket.SettledBytes+r.Bytes[i]
		}
	}
	return heat
}

func bucketOf(heat float64) int {
	if heat < math.Ldexp(1, -6) {
		return 0
	}
	_, exponent := math.Frexp(heat)
	return min(27, exponent+6)
}

// account adds a step to what is stored.
func (r *course) account(i int) {
	var stored float64
	for j := range r.groups {
		if r.groups[j].born {
			stored += ladder[r.groups[j].rung].Overhead() * float64(r.Bytes[j])
		}
	}
	r.out.add(i, stored)
}

// add accounts for a step in which so many bytes were stored.
func (o *outcome) add(i int, stored float64) {
	o.storedDays += stored * step.Hours() / 24
	if (i+1)%int(24*time.Hour/step) == 0 {
		o.days = append(o.days, day{int64(stored), o.sent, o.written})
	}
}

// cost is what a policy or an oracle pays, in bytes stored for a day.
func (o *outcome) cost(s *setting) float64 {
	return o.storedDays + float64(o.sent)*s.networkDays + o.missCost
}

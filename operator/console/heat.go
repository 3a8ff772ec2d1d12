package console

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/restripe/restripe/agent/gateway/api"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/console/history"
	"github.com/restripe/restripe/operator/price"
)

// heats shows how often classes are used, now and in the past.
type heats struct {
	*sources
	*watching
	history  *history.History
	interval time.Duration // between two samples of the history
}

// GetHeat says how often the groups of classes are used.
func (s *heats) GetHeat(_ context.Context, request *consolev1.GetHeatRequest) (*consolev1.HeatReport, error) {
	return s.heat(request.Backend, request.Class), nil
}

// WatchHeat does so whenever the gateways have a new report.
func (s *heats) WatchHeat(ctx context.Context, request *consolev1.WatchHeatRequest, stream *connect.ServerStream[consolev1.HeatReport]) error {
	take := func() *consolev1.HeatReport { return s.heat(request.Backend, request.Class) }
	same := func(a, b *consolev1.HeatReport) bool {
		return sameSources(a.Sources, b.Sources) && proto.Equal(&consolev1.HeatReport{Classes: a.Classes}, &consolev1.HeatReport{Classes: b.Classes})
	}
	return watchOne(ctx, s.watching, take, same, stream.Send)
}

func (s *heats) heat(backend, class string) *consolev1.HeatReport {
	report := &consolev1.HeatReport{Sources: s.freshness(backend)}
	policies := s.world.policiesByClass()
	for _, seen := range s.backends.all(backend) {
		heat, known, _ := seen.observer.Heat.Get()
		if !known {
			continue
		}
		for i := range heat.Classes {
			if name := heat.Classes[i].Class; class == "" || name == class {
				report.Classes = append(report.Classes, classHeatView(seen.name, &heat, &heat.Classes[i], policies[classKey{seen.name, name}], s.now()))
			}
		}
	}
	return report
}

func classHeatView(backend string, report *api.HeatReport, class *api.ClassHeat, policy *v1alpha1.RedundancyPolicy, now time.Time) *consolev1.ClassHeat {
	view := &consolev1.ClassHeat{
		Backend: backend, Class: class.Class, At: contract.Time(report.At), Complete: report.Complete, HalfLife: class.HalfLife,
		Dwell: class.Dwell,
	}
	if policy != nil {
		view.Policy, view.Rules, view.Pin = policy.Name, ruleViews(policy), pinView(policy, now)
		view.Choice = choiceView(policy.Status.Temperature)
	}
	for i := range class.Rungs {
		rung := &class.Rungs[i]
		rungView := &consolev1.RungHeat{Scheme: rung.Scheme, Groups: rung.Groups, Bytes: rung.Bytes, StoredBytes: rung.StoredBytes}
		for j, bucket := range rung.Buckets {
			if bucket.Groups == 0 {
				continue
			}
			bucketView := &consolev1.HeatBucket{
				AtLeast: api.HeatEdge(j), Groups: bucket.Groups, Bytes: bucket.Bytes, SettledGroups: bucket.SettledGroups,
			}
			if below := api.HeatEdge(j + 1); !math.IsInf(below, 1) {
				bucketView.Below = proto.Float64(below)
			}
			rungView.Buckets = append(rungView.Buckets, bucketView)
		}
		view.Rungs = append(view.Rungs, rungView)
	}
	return view
}

// ruleViews are the temperature rules of a policy.
func ruleViews(policy *v1alpha1.RedundancyPolicy) []*consolev1.TemperatureRule {
	if policy.Spec.Temperature == nil {
		return nil
	}
	var views []*consolev1.TemperatureRule
	for _, rule := range policy.Spec.Temperature.Rules {
		views = append(views, &consolev1.TemperatureRule{Scheme: string(rule.Scheme), AtLeast: floatOf(rule.AtLeast), Below: floatOf(rule.Below)})
	}
	return views
}

// choiceView is who chooses the steps of groups; nil where nobody does.
func choiceView(status *v1alpha1.TemperatureStatus) *consolev1.TemperatureChoice {
	if status == nil {
		return nil
	}
	regret := price.RegretOf(status)
	view := &consolev1.TemperatureChoice{
		Leader: status.Leader, Since: contract.Time(status.Since.Time), Reason: status.Reason,
		CountedSince: contract.Time(status.CountedSince.Time),
		Days:         regret.Days, Paid: regret.Paid, SavedPerMonth: regret.SavedPerMonth, ByRules: regret.Rules,
		LookedAt: stampOf(status.LookedAt),
	}
	for _, way := range regret.Ways {
		view.Ways = append(view.Ways, &consolev1.TemperatureWay{Text: way.Text, Paid: way.Paid, Leads: way.Leads, Fixed: way.Fixed})
	}
	if regret.Fixed != nil {
		view.BestFixed = regret.Fixed.Text
	}
	return view
}

func floatOf(quantity *resource.Quantity) *float64 {
	if quantity == nil {
		return nil
	}
	return proto.Float64(quantity.AsApproximateFloat64())
}

// sample takes the samples of the history until the context ends: at intervals, and at once of classes that it has none of.
func (s *heats) sample(ctx context.Context) {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	taken := map[history.Class]bool{}
	for due := true; ; {
		changed := s.changed.Wait()
		samples := map[history.Class]history.Sample{}
		if due || s.isNew(taken) {
			samples = s.samples()
		}
		if !due {
			maps.DeleteFunc(samples, func(class history.Class, _ history.Sample) bool { return taken[class] })
		}
		if len(samples) > 0 {
			s.history.Add(samples)
			for class := range samples {
				taken[class] = true
			}
		}
		select {
		case <-changed:
			due = false
		case <-ticker.C:
			due = true
		case <-ctx.Done():
			return
		}
	}
}

// isNew reports whether there is a class that no sample was taken of.
func (s *heats) isNew(taken map[history.Class]bool) bool {
	for _, seen := range s.backends.all("") {
		report, known, fresh := seen.observer.Heat.Get()
		if known && fresh.Err == nil && report.Complete && slices.ContainsFunc(report.Classes, func(class api.ClassHeat) bool {
			return !taken[history.Class{Backend: seen.name, Class: class.Class}]
		}) {
			return true
		}
	}
	return false
}

// samples is what a sample of now says of every class that is fresh.
func (s *heats) samples() map[history.Class]history.Sample {
	samples := map[history.Class]history.Sample{}
	policies := s.world.policiesByClass()
	for _, seen := range s.backends.all("") {
		report, known, fresh := seen.observer.Heat.Get()
		if !known || fresh.Err != nil || !report.Complete {
			continue // a gap says that nothing is known; a line through it would not
		}
		for i := range report.Classes {
			class := &report.Classes[i]
			o := overviewOf(seen, class, policies[classKey{seen.name, class.Class}]).view
			one := history.Sample{At: s.now().UTC(), Bytes: o.Bytes, Stored: o.StoredBytes, Saved: o.SavedBytes, Buckets: bucketsOf(class)}
			for _, rung := range o.Rungs {
				one.Rungs = append(one.Rungs, history.Rung{Scheme: rung.Scheme, Bytes: rung.Bytes, Stored: rung.StoredBytes})
			}
			samples[history.Class{Backend: seen.name, Class: class.Class}] = one
		}
	}
	return samples
}

// bucketsOf adds up the buckets of all rungs.
func bucketsOf(class *api.ClassHeat) (buckets []history.Bucket) {
	var sums [api.HeatBuckets]int64
	for i := range class.Rungs {
		for j, bucket := range class.Rungs[i].Buckets {
			sums[j] += bucket.Bytes
		}
	}
	for j, bytes := range sums {
		if bytes > 0 {
			buckets = append(buckets, history.Bucket{AtLeast: api.HeatEdge(j), Bytes: bytes})
		}
	}
	return buckets
}

// The most samples of a class in one answer, and how many there are where nobody says.
const (
	historyMost    = 2000
	historyDefault = 300
)

// GetHistory returns the heat and the sizes of classes over time.
func (s *heats) GetHistory(_ context.Context, request *consolev1.GetHistoryRequest) (*consolev1.History, error) {
	answer := &consolev1.History{Oldest: contract.Time(s.history.Oldest())}
	if err := s.history.Problem(); err != nil {
		answer.Error = oneLine(err)
	}
	query := history.Query{
		Class: history.Class{Backend: request.Backend, Class: request.Class}, Since: timeOf(request.Since), Until: timeOf(request.Until),
		Samples: int(min(cmp.Or(max(0, request.Samples), historyDefault), historyMost)),
	}
	policies := s.world.policiesByClass()
	all := s.history.Find(query)
	if most := int(request.Classes); most > 0 && len(all) > most {
		slices.SortStableFunc(all, func(a, b history.Series) int { return cmp.Compare(newest(&b), newest(&a)) })
		all = all[:most]
	}
	for _, series := range all {
		policy := policies[classKey{series.Backend, series.Class.Class}]
		view := &consolev1.ClassHistory{Backend: series.Backend, Class: series.Class.Class, Prices: pricesView(policy)}
		if policy != nil {
			view.Policy = policy.Name
		}
		if seen := s.backends.at(series.Backend); seen != nil {
			if ladder := seen.ladder(series.Class.Class); len(ladder) > 0 {
				view.Hottest = ladder[0].String()
			}
		}
		for i := range series.Samples {
			view.Samples = append(view.Samples, sampleView(&series.Samples[i], view.Prices))
		}
		answer.Classes = append(answer.Classes, view)
	}
	if request.Total {
		answer.Classes = []*consolev1.ClassHistory{{Backend: request.Backend, Samples: addedUp(answer.Classes, query.Samples)}}
	}
	return answer, nil
}

// newest is how many bytes the last sample of a class has.
func newest(series *history.Series) int64 {
	if len(series.Samples) == 0 {
		return 0
	}
	return series.Samples[len(series.Samples)-1].Bytes
}

// addedUp adds classes up at no more than so many moments. Classes are not sampled at the same moments: each counts with
// its last sample.
func addedUp(classes []*consolev1.ClassHistory, most int) (sums []*consolev1.HistorySample) {
	type event struct {
		class  int
		sample *consolev1.HistorySample
	}
	var events []event
	for i, class := range classes {
		for _, sample := range class.Samples {
			events = append(events, event{i, sample})
		}
	}
	if len(events) == 0 {
		return nil
	}
	at := func(e event) time.Time { return e.sample.At.AsTime() }
	slices.SortStableFunc(events, func(a, b event) int { return at(a).Compare(at(b)) })
	began := at(events[0])
	step := at(events[len(events)-1]).Sub(began)/time.Duration(max(1, most-1)) + 1
	last := make([]*consolev1.HistorySample, len(classes))
	sum := &consolev1.HistorySample{}
	add := func(one *consolev1.HistorySample, sign int64) {
		sum.Bytes, sum.StoredBytes, sum.SavedBytes = sum.Bytes+sign*one.Bytes, sum.StoredBytes+sign*one.StoredBytes, sum.SavedBytes+sign*one.SavedBytes
	}
	for i, e := range events {
		if before := last[e.class]; before != nil {
			add(before, -1)
		}
		last[e.class] = e.sample
		add(e.sample, 1)
		if i+1 < len(events) && at(events[i+1]).Sub(began)/step == at(e).Sub(began)/step {
			continue
		}
		whole := &consolev1.HistorySample{At: e.sample.At, Bytes: sum.Bytes, StoredBytes: sum.StoredBytes, SavedBytes: sum.SavedBytes}
		for _, one := range last {
			whole.Cost, whole.HottestCost = whole.Cost+one.GetCost(), whole.HottestCost+one.GetHottestCost()
		}
		sums = append(sums, whole)
	}
	return sums
}

func sampleView(one *history.Sample, prices *consolev1.Prices) *consolev1.HistorySample {
	table := price.Table{StorageGiBMonth: prices.StorageGibMonth}
	view := &consolev1.HistorySample{
		At: contract.Time(one.At), Bytes: one.Bytes, StoredBytes: one.Stored, SavedBytes: one.Saved,
		Cost: table.Storage(one.Stored), HottestCost: table.Storage(one.Stored + one.Saved),
	}
	for _, rung := range one.Rungs {
		view.Rungs = append(view.Rungs, &consolev1.HistoryRung{Scheme: rung.Scheme, Bytes: rung.Bytes, StoredBytes: rung.Stored})
	}
	for _, bucket := range one.Buckets {
		view.Buckets = append(view.Buckets, &consolev1.HistoryBucket{AtLeast: bucket.AtLeast, Bytes: bucket.Bytes})
	}
	return view
}

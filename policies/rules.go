package policies

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	// Zones are checked against the same names everywhere, whatever the machine has installed.
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// rules checks what concerns several fields of one object, or what the schema cannot say, and says it in better words
// than the schema. Presence is looked up in the tree, as value lacks the fields that have a finding already.
func (c *checker) rules(n *node, value runtime.Object) {
	spec := n.get("spec")
	if spec == nil || spec.kind != mappingNode {
		return
	}
	r := &ruler{checker: c, tree: n, spec: spec}
	switch value := value.(type) {
	case *v1alpha1.StorageBackend:
		r.backend(value)
	case *v1alpha1.RedundancyScheme:
		r.scheme()
	case *v1alpha1.RedundancyPolicy:
		r.policy(value)
	case *v1alpha1.Transition:
		r.transition(value)
	}
}

// ruler checks one object.
type ruler struct {
	*checker
	tree, spec *node
}

func (r *ruler) wrongAt(path, format string, values ...any) {
	r.report(nil, r.tree.at(path), path, format, values...)
}

func (r *ruler) warn(path, format string, values ...any) {
	r.findings = append(r.findings, Finding{
		Position: r.tree.at(path), Severity: Warning, Object: r.object, Path: path, Message: fmt.Sprintf(format, values...),
	})
}

// has reports whether a field of the spec was written.
func (r *ruler) has(names ...string) bool { return r.spec.get(names...) != nil }

func (r *ruler) backend(backend *v1alpha1.StorageBackend) {
	if repair := backend.Spec.Repair; repair != nil {
		for i := range repair.Windows {
			r.window(&repair.Windows[i], index("spec.repair.windows", i))
		}
	}
	nodes := r.spec.get("nodes")
	if nodes == nil {
		return
	}
	seen := make(map[string]int)
	for i, item := range nodes.items {
		name, is := item.get("name").text()
		if !is {
			continue
		}
		if first, twice := seen[name]; twice {
			r.wrongAt(index("spec.nodes", i)+".name", "node %q is nodes[%d] already; every node has its own name", name, first)
			continue
		}
		seen[name] = i
	}
}

func (r *ruler) scheme() {
	ways := 0
	for _, pair := range [][2]string{{"replicas", "replicas"}, {"k", "m"}, {"dataChunks", "codingChunks"}} {
		first, second := r.has(pair[0]), r.has(pair[1])
		if first || second {
			ways++
		}
		switch {
		case first && !second:
			r.wrongAt("spec."+pair[1], "is missing; %s and %s go together", pair[0], pair[1])
		case second && !first:
			r.wrongAt("spec."+pair[0], "is missing; %s and %s go together", pair[0], pair[1])
		}
	}
	if ways != 1 {
		r.wrongAt("spec", "has %d of three spellings of a code; give exactly one of replicas, k and m, or dataChunks and codingChunks", ways)
	}
	if replicas := r.spec.get("replicas"); replicas != nil && replicas.scalar == int64(1) {
		r.warn("spec.replicas", "one copy is no redundancy: a lost node loses the data; fine for data that can be made again")
	}
}

func (r *ruler) transition(transition *v1alpha1.Transition) {
	spec := transition.Spec
	if spec.From != "" && spec.From == spec.To {
		r.wrongAt("spec.to", "is %q, like from; name the scheme to move to", spec.To)
	}
	if spec.Heat != nil {
		r.bounds("spec.heat", spec.Heat.AtLeast, spec.Heat.Below)
	}
}

// bounds checks that something is between two bounds.
func (r *ruler) bounds(path string, atLeast, below *resource.Quantity) bool {
	if atLeast == nil || below == nil || atLeast.Cmp(*below) < 0 {
		return true
	}
	r.wrongAt(path+".below", "is %s, but atLeast is %s: nothing is in between; make atLeast the smaller one", below, atLeast)
	return false
}

func (r *ruler) policy(policy *v1alpha1.RedundancyPolicy) {
	spec := &policy.Spec
	switch ladder, target := r.has("ladder"), r.has("reliability"); {
	case ladder && target:
		r.wrongAt("spec.reliability", "ladder is given as well; give either a ladder or a reliability target, from which the ladder is worked out")
	case !ladder && !target:
		r.wrongAt("spec.ladder", "is missing; give a list of schemes, hottest first, such as [\"rep(3)\", \"rs(4,2)\"], or a reliability target")
	}
	if !r.has("selector", "class") && len(policy.Name) > api.MaxClassName {
		r.wrongAt("spec.selector.class", "is missing, and the policy's own name is longer than the %d characters of a class; give a class", api.MaxClassName)
	}
	r.steps(spec)
	r.packing(spec.Packing)
	r.expiry(spec)
	r.target(spec.Reliability)
	r.temperature(spec)
	r.pin(spec.Pin)
	for i := range spec.Windows {
		r.window(&spec.Windows[i], index("spec.windows", i))
	}
	r.approval(spec.Approval)
}

// steps checks that what names a step of the ladder is on it.
func (r *ruler) steps(spec *v1alpha1.RedundancyPolicySpec) {
	if len(spec.Ladder) == 0 {
		return
	}
	names := make([]string, len(spec.Ladder))
	on := make(map[v1alpha1.SchemeName]bool)
	for i, name := range spec.Ladder {
		names[i], on[name] = string(name), true
	}
	check := func(path string, name v1alpha1.SchemeName) {
		if name != "" && !on[name] {
			r.wrongAt(path, "%q is not on the ladder%s; the ladder has %s, spelled so", name, suggest(string(name), names), enumerate(names, "and"))
		}
	}
	check("spec.default", spec.Default)
	if spec.Packing != nil && spec.Packing.HotKeys != nil {
		hot := spec.Packing.HotKeys.Scheme
		check("spec.packing.hotKeys.scheme", hot)
		usual := cmp.Or(spec.Default, spec.Ladder[0])
		if on[hot] && slices.Index(spec.Ladder, hot) > slices.Index(spec.Ladder, usual) && on[usual] {
			r.wrongAt("spec.packing.hotKeys.scheme", "%q is colder than the default %q, under which other keys are put; give that one, "+
				"or one before it on the ladder", hot, usual)
		}
	}
	if spec.Pin != nil {
		check("spec.pin.scheme", spec.Pin.Scheme)
	}
	if spec.Temperature != nil {
		for i, rule := range spec.Temperature.Rules {
			check(index("spec.temperature.rules", i)+".scheme", rule.Scheme)
		}
	}
}

// expiry checks how long objects are there whose put does not say.
func (r *ruler) expiry(spec *v1alpha1.RedundancyPolicySpec) {
	if after := spec.ExpireAfter; after != nil && (after.Duration < api.MinExpireAfter || after.Duration > api.MaxExpireAfter) {
		r.wrongAt("spec.expireAfter", "is %s; give a duration from 1s to 876000h, such as 720h", after.Duration)
	}
}

// pin checks what a pin holds against and when it ends.
func (r *ruler) pin(pin *v1alpha1.Pin) {
	if pin == nil {
		return
	}
	if !r.has("temperature") {
		r.wrongAt("spec.pin", "holds against temperature, of which the policy has none; set default instead")
	}
	until := pin.Until.Time
	if r.now.IsZero() || until.IsZero() {
		return
	}
	words := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	switch latest := r.now.Add(v1alpha1.LongestPin); {
	case until.After(latest):
		r.wrongAt("spec.pin.until", "is %s, and a pin lasts a year at most; give a time before %s, or set default for good", words(until), words(latest))
	case !r.now.Before(until):
		r.warn("spec.pin.until", "is %s, which has passed: the pin has no effect; take it out, or give a time in the future", words(until))
	}
}

func (r *ruler) packing(packing *v1alpha1.Packing) {
	if packing == nil {
		return
	}
	group := resource.NewQuantity(api.DefaultGroupBytes, resource.BinarySI)
	if packing.GroupBytes != nil {
		group = packing.GroupBytes
		if bytes := group.Value(); bytes < api.MinGroupBytes || bytes > api.MaxGroupBytes {
			r.wrongAt("spec.packing.groupBytes", "is %s; give a size from 64Ki to 64Mi", group)
			return
		}
	}
	if packing.Below != nil && packing.Below.Cmp(*group) > 0 {
		r.wrongAt("spec.packing.below", "is %s, more than the %s of a group; a small object must fit a group: lower it or raise groupBytes (at most 64Mi)", packing.Below, group)
	}
	if packing.Delay != nil && packing.Delay.Duration > api.MaxPackDelay {
		r.wrongAt("spec.packing.delay", "is %s; give a duration from 0s to 1m, such as 5ms, as a client waits for it", packing.Delay.Duration)
	}
}

func (r *ruler) target(target *v1alpha1.Reliability) {
	if target == nil {
		return
	}
	if percent := target.AnnualFailurePercent; !percent.IsZero() && percent.AsApproximateFloat64() >= 100 {
		r.wrongAt("spec.reliability.annualFailurePercent", "is %s; give a percentage above 0 and below 100", &percent)
	}
	if overhead := target.MaxOverhead; !overhead.IsZero() && overhead.AsApproximateFloat64() <= 1 {
		r.wrongAt("spec.reliability.maxOverhead", "is %s, no room for redundancy; give bytes stored per byte, above 1, such as \"1.5\"", &overhead)
	}
}

func (r *ruler) approval(approval *v1alpha1.Approval) {
	if approval == nil {
		return
	}
	for _, name := range []string{"aboveBytes", "aboveCost"} {
		if approval.Mode != v1alpha1.ApprovalManualAbove && r.has("approval", name) {
			r.warn("spec.approval."+name, "has no effect in mode %s; set mode to ManualAbove, or take it out", modeOf(approval))
		}
	}
	if approval.Mode == v1alpha1.ApprovalManualAbove && !r.has("approval", "aboveBytes") && !r.has("approval", "aboveCost") {
		r.wrongAt("spec.approval", "mode ManualAbove needs a bound; give aboveBytes, such as 10Gi, or aboveCost")
	}
}

func modeOf(approval *v1alpha1.Approval) v1alpha1.ApprovalMode {
	if approval.Mode == "" {
		return v1alpha1.ApprovalAuto
	}
	return approval.Mode
}

const longestWindow = 168 * time.Hour

func (r *ruler) window(window *v1alpha1.Window, path string) {
	if window.Duration.Duration > longestWindow {
		r.wrongAt(path+".duration", "is %s; a window lasts at most 168h", window.Duration.Duration)
	}
	zone, err := time.LoadLocation(window.TimeZone)
	if err != nil {
		r.wrongAt(path+".timeZone", "there is no time zone %q; give a name such as Europe/Berlin or UTC", window.TimeZone)
		zone = time.UTC
	}
	if window.Schedule == "" {
		return // it has a finding already
	}
	schedule, err := cron.ParseStandard(window.Schedule)
	if err != nil {
		r.wrongAt(path+".schedule", "%q is no schedule: %v; give %s", window.Schedule, err,
			"minute (0-59), hour (0-23), day of month (1-31), month (1-12) and day of week (0-6)")
		return
	}
	// A schedule looks five years ahead; some leap day is among them.
	if schedule.Next(time.Date(2027, 1, 1, 0, 0, 0, 0, zone)).IsZero() {
		r.wrongAt(path+".schedule", "%q never comes; look at the day of month and the month", window.Schedule)
	}
}

// temperature checks the rules beside each other.
func (r *ruler) temperature(spec *v1alpha1.RedundancyPolicySpec) {
	if spec.Temperature == nil {
		return
	}
	if r.mode(spec.Temperature); spec.Temperature.Automatic() {
		return
	}
	bands := make([]band, 0, len(spec.Temperature.Rules))
	whole := true
	for i, rule := range spec.Temperature.Rules {
		path := index("spec.temperature.rules", i)
		if !r.has("temperature", "rules") {
			return
		}
		item := r.spec.get("temperature", "rules").items[i]
		if item.get("atLeast") == nil && item.get("below") == nil {
			if !r.suspect(item) {
				r.wrongAt(path, "has no bound; give atLeast, below or both, in accesses a day")
			}
			whole = false
			continue
		}
		whole = whole && !r.suspect(item)
		whole = r.bounds(path, rule.AtLeast, rule.Below) && whole
		bands = append(bands, newBand(path, rule))
	}
	if !whole {
		return
	}
	r.coverage(bands)
	r.order(bands, spec.Ladder)
	r.resolution(bands, spec.Temperature)
}

// mode holds who chooses against what is given to choose by.
func (r *ruler) mode(t *v1alpha1.Temperature) {
	if !t.Automatic() {
		if !r.has("temperature", "rules") {
			r.wrongAt("spec.temperature", "mode rules has no rules; give some, or mode auto, which needs none")
		}
		return
	}
	for _, field := range []string{"rules", "halfLife", "dwell", "hysteresisPercent"} {
		if !r.has("temperature", field) {
			continue
		}
		if t.Mode == "" {
			r.wrongAt("spec.temperature."+field, "goes with rules, of which there are none; give rules, or take it out")
		} else {
			r.wrongAt("spec.temperature."+field, "is chosen by mode auto; take it out, or give mode rules")
		}
	}
}

// suspect reports whether a field of a mapping has a finding already, such as a name that was written wrongly.
func (r *ruler) suspect(n *node) bool {
	return slices.ContainsFunc(n.fields, func(f *property) bool { return r.wrong[f.value] })
}

// band is the heat a rule is for.
type band struct {
	path           string
	scheme         v1alpha1.SchemeName
	atLeast, below float64
}

func newBand(path string, rule v1alpha1.TemperatureRule) band {
	b := band{path: path, scheme: rule.Scheme, below: math.Inf(1)}
	if rule.AtLeast != nil {
		b.atLeast = rule.AtLeast.AsApproximateFloat64()
	}
	if rule.Below != nil {
		b.below = rule.Below.AsApproximateFloat64()
	}
	return b
}

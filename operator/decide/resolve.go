package decide

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// Schemes are the declared codes by the name of their RedundancyScheme.
type Schemes map[string]stripe.Scheme

// Code returns the code that a RedundancyScheme declares.
func Code(spec v1alpha1.RedundancySchemeSpec) (stripe.Scheme, *Problem) {
	var scheme stripe.Scheme
	ways := 0
	if spec.Replicas != nil {
		scheme, ways = stripe.Replicas(int(*spec.Replicas)), ways+1
	}
	for _, pair := range [][2]*int32{{spec.K, spec.M}, {spec.DataChunks, spec.CodingChunks}} {
		switch {
		case pair[0] != nil && pair[1] != nil:
			scheme, ways = stripe.RS(int(*pair[0]), int(*pair[1])), ways+1
		case pair[0] != nil || pair[1] != nil:
			ways = 2
		}
	}
	if ways != 1 {
		return stripe.Scheme{}, problem(ReasonInvalidScheme, "give exactly one of replicas, k and m, or dataChunks and codingChunks")
	}
	if err := scheme.Validate(); err != nil {
		return stripe.Scheme{}, problem(ReasonInvalidScheme, "%v", err)
	}
	return scheme, nil
}

// Resolve returns the code that a step of a ladder names: a declared scheme, or a code itself.
func (s Schemes) Resolve(name v1alpha1.SchemeName) (stripe.Scheme, *Problem) {
	if scheme, declared := s[string(name)]; declared {
		return scheme, nil
	}
	scheme, err := stripe.ParseScheme(string(name))
	if err != nil {
		return stripe.Scheme{}, problem(ReasonUnknownScheme,
			"no RedundancyScheme is called %q and it is no code; declare it, or write a code such as rep(3) or rs(4,2)", name)
	}
	return scheme, nil
}

// Chooser picks the ladder for a reliability target.
type Chooser func(target v1alpha1.Reliability) (stripe.Ladder, error)

// Class is what the gateways are told of a policy. Absent pointers leave the gateway's defaults.
type Class struct {
	Name       string
	Ladder     stripe.Ladder
	Default    stripe.Scheme
	Prefixes   []string
	PackBelow  *int64
	PackDelay  *time.Duration
	GroupBytes *int64
	DeadAtMost *int
	HotKeys    *api.HotKeys     // nil: hot keys are kept as others
	PackMode   api.PackMode     // empty: the policy does not say
	Repair     api.RepairOnRead // on reads; empty: the policy does not say
	Keep       api.KeepVersions // versions of objects that are put over
	Expire     time.Duration    // after which objects are gone; 0: never
	HalfLife   time.Duration
	Dwell      time.Duration
	Prices     *api.RungPrices // nil: candidates are not followed
	Expected   bool            // heat is what is to be expected, and not what was counted
	ExpectMean bool            // and of no group less than they are used on average
}

// Declaration is a policy read and resolved.
type Declaration struct {
	Class   Class
	Rules   *Rules // nil: everything belongs on the class's default
	Auto    bool   // Rules are those of whichever candidate leads, as Follow says
	Pin     *Pin   // nil: there is none; it may have ended
	Pinned  bool   // the pin is in force, as At says
	Windows Windows
	Limits  Limits
	Choice  *v1alpha1.LadderChoice // of the ladder; nil: the policy declares it
}

// ClassName is the class of a policy at the gateways.
func ClassName(policy *v1alpha1.RedundancyPolicy) string {
	if policy.Spec.Selector.Class != "" {
		return policy.Spec.Selector.Class
	}
	return policy.Name
}

// Declare reads a policy; choose works out the ladder of a reliability target and may be nil where there is none. The
// problem is the first one found, for the condition Accepted.
func Declare(policy *v1alpha1.RedundancyPolicy, schemes Schemes, choose Chooser) (*Declaration, *Problem) {
	d := Declaration{Class: Class{
		Name: ClassName(policy), Prefixes: policy.Spec.Selector.Prefixes, HalfLife: api.DefaultHalfLife, Dwell: api.DefaultDwell,
	}}
	steps := []func() *Problem{
		func() *Problem { return d.Class.resolveLadder(&policy.Spec, schemes, choose) },
		func() *Problem { return d.Class.pack(policy.Spec.Packing) },
		func() *Problem { return d.Class.hotKeys(policy.Spec.Packing, schemes) },
		func() *Problem { return d.Class.repairOnRead(policy.Spec.RepairOnRead) },
		func() *Problem { return d.Class.retain(&policy.Spec) },
		func() (wrong *Problem) {
			if temperature := policy.Spec.Temperature; temperature != nil {
				if d.Auto = temperature.Automatic(); d.Auto {
					return automatic(temperature)
				}
				d.Class.timing(temperature)
				d.Rules, wrong = newRules(temperature, schemes, d.Class.Ladder)
			}
			return wrong
		},
		func() (wrong *Problem) { d.Pin, wrong = newPin(&policy.Spec, schemes, d.Class.Ladder); return wrong },
		func() (wrong *Problem) { d.Windows, wrong = ParseWindows(policy.Spec.Windows); return wrong },
		func() (wrong *Problem) { d.Limits, wrong = NewLimits(policy.Spec.Budget); return wrong },
	}
	for _, step := range steps {
		if wrong := step(); wrong != nil {
			return nil, wrong
		}
	}
	return &d, nil
}

func (c *Class) resolveLadder(spec *v1alpha1.RedundancyPolicySpec, schemes Schemes, choose Chooser) *Problem {
	names := map[stripe.Scheme]v1alpha1.SchemeName{}
	for _, name := range spec.Ladder {
		scheme, wrong := schemes.Resolve(name)
		if wrong != nil {
			return wrong
		}
		if other, twice := names[scheme]; twice {
			return problem(ReasonInvalidLadder, "%s and %s of the ladder are the same code, %s; keep one", other, name, scheme)
		}
		names[scheme] = name
		c.Ladder = append(c.Ladder, scheme)
	}
	if spec.Reliability != nil && len(spec.Ladder) == 0 {
		if choose == nil {
			return problem(ReasonTargetOutOfReach, "the ladder for %d nines cannot be worked out before the nodes of the backend are known", spec.Reliability.Nines)
		}
		ladder, err := choose(*spec.Reliability)
		if err != nil {
			return problem(ReasonTargetOutOfReach, "no ladder reaches %d nines: %v", spec.Reliability.Nines, err)
		}
		c.Ladder = ladder
	}
	if err := c.Ladder.Validate(); err != nil {
		return problem(ReasonInvalidLadder, "%v", err)
	}
	layout, err := stripe.NewLayout(c.Ladder, 0, stripe.ModeFree)
	if err != nil {
		return problem(ReasonInvalidLadder, "%v", err)
	}
	if layout.Rows > api.MaxRows {
		return problem(ReasonInvalidLadder, "%s needs groups of %d rows (at most %d); choose schemes whose k divide the widest one", c.Ladder, layout.Rows, api.MaxRows)
	}
	return c.resolveDefault(spec.Default, schemes)
}

func (c *Class) resolveDefault(name v1alpha1.SchemeName, schemes Schemes) *Problem {
	c.Default = c.Ladder[0]
	if name == "" {
		return nil
	}
	scheme, wrong := schemes.Resolve(name)
	if wrong != nil {
		return wrong
	}
	if !c.Ladder.Contains(scheme) {
		return problem(ReasonInvalidDefault, "default %s (%s) is not on the ladder %s; choose a step of the ladder", name, scheme, c.Ladder)
	}
	c.Default = scheme
	return nil
}

// automatic refuses what mode auto chooses by itself.
func automatic(t *v1alpha1.Temperature) *Problem {
	for field, given := range map[string]bool{
		"rules": len(t.Rules) > 0, "halfLife": t.HalfLife.Duration != 0, "dwell": t.Dwell.Duration != 0,
		"hysteresisPercent": t.HysteresisPercent != nil,
	} {
		if given {
			return problem(ReasonInvalidRules, "temperature.%s is given, and mode auto chooses it; take it out, or give mode rules", field)
		}
	}
	return nil
}

func (c *Class) timing(temperature *v1alpha1.Temperature) {
	if temperature.HalfLife.Duration > 0 {
		c.HalfLife = temperature.HalfLife.Duration
	}
	if temperature.Dwell.Duration > 0 {
		c.Dwell = temperature.Dwell.Duration
	}
}

func (c *Class) pack(packing *v1alpha1.Packing) *Problem {
	if packing == nil {
		return nil
	}
	c.PackBelow, c.GroupBytes = bytesOf(packing.Below), bytesOf(packing.GroupBytes)
	group := int64(api.DefaultGroupBytes)
	if c.GroupBytes != nil {
		group = *c.GroupBytes
	}
	if group < api.MinGroupBytes || group > api.MaxGroupBytes {
		return problem(ReasonInvalidPacking, "packing.groupBytes %s is outside %s to %s", words.Bytes(group), words.Bytes(api.MinGroupBytes), words.Bytes(api.MaxGroupBytes))
	}
	if c.PackBelow != nil && (*c.PackBelow < 0 || *c.PackBelow > group) {
		return problem(ReasonInvalidPacking, "packing.below must be between 0 and the group's %s; a small object must fit a group", words.Bytes(group))
	}
	if packing.Delay != nil {
		if packing.Delay.Duration < 0 || packing.Delay.Duration > api.MaxPackDelay {
			return problem(ReasonInvalidPacking, "packing.delay %s is outside 0s to 1m", durationText(packing.Delay.Duration))
		}
		c.PackDelay = &packing.Delay.Duration
	}
	if percent := packing.DeadAtMostPercent; percent != nil {
		if *percent < api.MinDeadAtMost || *percent > api.NeverCompact {
			return problem(ReasonInvalidPacking, "packing.deadAtMostPercent %d is outside %d to %d", *percent, api.MinDeadAtMost, api.NeverCompact)
		}
		most := int(*percent)
		c.DeadAtMost = &most
	}
	switch c.PackMode = api.PackMode(packing.Mode); c.PackMode {
	case "", api.PackAuto, api.PackBatch, api.PackAtOnce:
		return nil
	}
	return problem(ReasonInvalidPacking, "packing.mode %q is none; use %s, %s or %s",
		packing.Mode, api.PackAuto, api.PackBatch, api.PackAtOnce)
}

func (c *Class) hotKeys(packing *v1alpha1.Packing, schemes Schemes) *Problem {
	if packing == nil || packing.HotKeys == nil {
		return nil
	}
	scheme, wrong := schemes.Resolve(packing.HotKeys.Scheme)
	if wrong != nil {
		return wrong
	}
	c.HotKeys = &api.HotKeys{Scheme: scheme, Reads: packing.HotKeys.Reads}
	if err := c.HotKeys.Check(c.Ladder, c.Default); err != nil {
		return problem(ReasonInvalidPacking, "packing.hotKeys: %v", err)
	}
	return nil
}

func (c *Class) repairOnRead(mode v1alpha1.RepairOnRead) *Problem {
	if _, err := api.ParseRepairOnRead(string(mode)); err != nil {
		return problem(ReasonInvalidRepair, "repairOnRead: %v", err)
	}
	c.Repair = api.RepairOnRead(mode)
	return nil
}

// retain takes what versions of objects are kept, and how long objects are.
func (c *Class) retain(spec *v1alpha1.RedundancyPolicySpec) *Problem {
	if spec.KeepVersions != nil {
		keep, err := api.ParseKeepVersions(spec.KeepVersions.String())
		if err != nil {
			return problem(ReasonInvalidRetention, "keepVersions: %v", err)
		}
		c.Keep = keep
	}
	if after := spec.ExpireAfter; after != nil {
		if c.Expire = after.Duration; c.Expire < api.MinExpireAfter || c.Expire > api.MaxExpireAfter {
			return problem(ReasonInvalidRetention, "expireAfter %s is outside %s to %s", c.Expire, api.MinExpireAfter, api.MaxExpireAfter)
		}
	}
	return nil
}

// nodesNeeded is how many distinct nodes a group of the class lies on.
func (c *Class) nodesNeeded() int { return c.Ladder.Width() + c.Ladder.MaxParity() }

// largestBlock is the size of the largest block a group of the class may have: a slot of the narrowest scheme, which
// for replicas is a whole copy.
func (c *Class) largestBlock() int64 {
	group := int64(api.DefaultGroupBytes)
	if c.GroupBytes != nil {
		group = *c.GroupBytes
	}
	narrowest := int64(c.Ladder.Width())
	for _, scheme := range c.Ladder {
		narrowest = min(narrowest, int64(scheme.K))
	}
	return (group+narrowest-1)/narrowest + blockHeaderBytes
}

// blockHeaderBytes is more than the header of any block takes.
const blockHeaderBytes = 16 << 10

func bytesOf(quantity *resource.Quantity) *int64 {
	if quantity == nil {
		return nil
	}
	value := quantity.Value()
	return &value
}

func formatLadder(ladder stripe.Ladder) string {
	text := ""
	for i, scheme := range ladder {
		if i > 0 {
			text += " > "
		}
		text += fmt.Sprint(scheme)
	}
	return text
}

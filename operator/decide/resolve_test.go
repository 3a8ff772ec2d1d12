package decide

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

func TestCode(t *testing.T) {
	for _, c := range []struct {
		spec v1alpha1.RedundancySchemeSpec
		want string
	}{
		{v1alpha1.RedundancySchemeSpec{Replicas: number[int32](3)}, "rep(3)"},
		{v1alpha1.RedundancySchemeSpec{K: number[int32](4), M: number[int32](2)}, "rs(4,2)"},
		{v1alpha1.RedundancySchemeSpec{DataChunks: number[int32](12), CodingChunks: number[int32](2)}, "rs(12,2)"},
		{v1alpha1.RedundancySchemeSpec{}, "exactly one of"},
		{v1alpha1.RedundancySchemeSpec{K: number[int32](4)}, "exactly one of"},
		{v1alpha1.RedundancySchemeSpec{Replicas: number[int32](3), K: number[int32](4), M: number[int32](2)}, "exactly one of"},
		{v1alpha1.RedundancySchemeSpec{DataChunks: number[int32](4), M: number[int32](2)}, "exactly one of"},
		{v1alpha1.RedundancySchemeSpec{K: number[int32](65), M: number[int32](2)}, "at most k = 64"},
		{v1alpha1.RedundancySchemeSpec{Replicas: number[int32](0)}, "at least one copy"},
	} {
		scheme, wrong := Code(c.spec)
		if wrong == nil && scheme.String() != c.want || wrong != nil && !strings.Contains(wrong.Message, c.want) {
			t.Errorf("%+v: %s, %v; want %s", c.spec, scheme, wrong, c.want)
		}
	}
}

func TestDeclare(t *testing.T) {
	schemes := Schemes{"hot": stripe.Replicas(3), "cold": stripe.RS(12, 2), "frozen": stripe.RS(12, 2)}
	policy := mediaPolicy("hot rs(4,2) cold", "hot>=8", "cold<0.5")
	policy.Spec.Default = "rs(4,2)"
	policy.Spec.Temperature.HalfLife = metav1.Duration{Duration: time.Hour}
	policy.Spec.Packing = &v1alpha1.Packing{Below: quantity("64Ki"), Delay: &metav1.Duration{Duration: 5 * time.Millisecond}}
	policy.Spec.Packing.DeadAtMostPercent, policy.Spec.Packing.Mode = new(int32(40)), v1alpha1.PackBatch
	policy.Spec.RepairOnRead = v1alpha1.RepairWake
	policy.Spec.KeepVersions = new(intstr.FromString("durable"))
	policy.Spec.ExpireAfter = &metav1.Duration{Duration: time.Hour}
	policy.Spec.Packing.HotKeys = &v1alpha1.HotKeys{Scheme: "hot", Reads: 100}
	d, wrong := Declare(policy, schemes, nil)
	if wrong != nil {
		t.Fatal(wrong)
	}
	class := d.Class
	if class.Name != "media" || class.Ladder.String() != "rep(3),rs(4,2),rs(12,2)" || class.Default != stripe.RS(4, 2) || class.HalfLife != time.Hour ||
		class.Dwell != api.DefaultDwell || *class.PackBelow != 64<<10 || *class.PackDelay != 5*time.Millisecond || class.GroupBytes != nil ||
		*class.DeadAtMost != 40 || class.PackMode != api.PackBatch || class.Repair != api.RepairWake ||
		class.Keep != api.KeepDurable || class.Expire != time.Hour ||
		*class.HotKeys != (api.HotKeys{Scheme: stripe.Replicas(3), Reads: 100}) {
		t.Errorf("%+v", class)
	}
	if text := d.Rules.String(); text != "rs(12,2) when used less than 0.5 times a day, rep(3) when used at least 8 times a day" {
		t.Error(text)
	}

	for _, c := range []struct {
		intent string
		change func(spec *v1alpha1.RedundancyPolicySpec)
		reason string
		says   string
	}{
		{"a scheme nobody declared", func(s *v1alpha1.RedundancyPolicySpec) { s.Ladder[0] = "warm" }, ReasonUnknownScheme, `called "warm"`},
		{"one code under two names", func(s *v1alpha1.RedundancyPolicySpec) { s.Ladder[1] = "frozen" }, ReasonInvalidLadder, "same code"},
		{"too many rows", func(s *v1alpha1.RedundancyPolicySpec) {
			s.Ladder = []v1alpha1.SchemeName{"rs(13,2)", "rs(11,2)", "rs(9,2)"}
		}, ReasonInvalidLadder, "rows"},
		{"no ladder", func(s *v1alpha1.RedundancyPolicySpec) { s.Ladder = nil }, ReasonInvalidLadder, "names no scheme"},
		{"default off the ladder", func(s *v1alpha1.RedundancyPolicySpec) { s.Default = "rs(6,3)" }, ReasonInvalidDefault, "not on the ladder"},
		{"rule off the ladder", func(s *v1alpha1.RedundancyPolicySpec) { s.Temperature.Rules[0].Scheme = "rs(6,3)" }, ReasonInvalidRules, "rules[0]"},
		{"rule that never holds", func(s *v1alpha1.RedundancyPolicySpec) { s.Temperature.Rules[0].Below = quantity("8") }, ReasonInvalidRules, "rules[0]"},
		{"no mode of packing", func(s *v1alpha1.RedundancyPolicySpec) {
			s.Packing.Mode = "never"
		}, ReasonInvalidPacking, "auto, batch or at-once"},
		{"more versions than are kept", func(s *v1alpha1.RedundancyPolicySpec) {
			s.KeepVersions = new(intstr.FromInt32(65))
		}, ReasonInvalidRetention, "from 0 to 64"},
		{"objects that are gone at once", func(s *v1alpha1.RedundancyPolicySpec) {
			s.ExpireAfter = &metav1.Duration{Duration: time.Millisecond}
		}, ReasonInvalidRetention, "outside 1s"},
		{"no way to repair", func(s *v1alpha1.RedundancyPolicySpec) {
			s.RepairOnRead = "first"
		}, ReasonInvalidRepair, "wait, wake or never"},
		{"group too small", func(s *v1alpha1.RedundancyPolicySpec) { s.Packing.GroupBytes = quantity("1Ki") }, ReasonInvalidPacking, "64 KiB to 64 MiB"},
		{"small object larger than a group", func(s *v1alpha1.RedundancyPolicySpec) { s.Packing.Below = quantity("5Mi") }, ReasonInvalidPacking, "must fit"},
		{"long delay", func(s *v1alpha1.RedundancyPolicySpec) { s.Packing.Delay.Duration = time.Hour }, ReasonInvalidPacking, "0s to 1m"},
		{"less than may be dead", func(s *v1alpha1.RedundancyPolicySpec) {
			s.Packing.DeadAtMostPercent = new(int32(4))
		}, ReasonInvalidPacking, "4 is outside 5 to 1000"},
		{"more than may be dead", func(s *v1alpha1.RedundancyPolicySpec) {
			s.Packing.DeadAtMostPercent = new(int32(1001))
		}, ReasonInvalidPacking, "5 to 1000"},
		{"hot keys off the ladder", func(s *v1alpha1.RedundancyPolicySpec) {
			s.Packing.HotKeys = &v1alpha1.HotKeys{Scheme: "rep(2)", Reads: 9}
		}, ReasonInvalidPacking, "packing.hotKeys: scheme rep(2) is not on the ladder"},
		{"hot keys colder than others", func(s *v1alpha1.RedundancyPolicySpec) {
			s.Packing.HotKeys = &v1alpha1.HotKeys{Scheme: "cold", Reads: 9}
		}, ReasonInvalidPacking, "is colder than the default"},
		{"hot keys without reads", func(s *v1alpha1.RedundancyPolicySpec) {
			s.Packing.HotKeys = &v1alpha1.HotKeys{Scheme: "hot"}
		}, ReasonInvalidPacking, "reads is 0; give how many"},
		{"no window", func(s *v1alpha1.RedundancyPolicySpec) {
			s.Windows = []v1alpha1.Window{{Schedule: "never", Duration: metav1.Duration{Duration: 1}}}
		}, ReasonInvalidWindow, "windows[0].schedule"},
		{"no budget", func(s *v1alpha1.RedundancyPolicySpec) { s.Budget = &v1alpha1.Budget{BytesPerSecond: quantity("0")} }, ReasonInvalidBudget, "lets nothing move"},
		{"a target before the nodes are known", func(s *v1alpha1.RedundancyPolicySpec) {
			s.Ladder, s.Reliability = nil, &v1alpha1.Reliability{Nines: 9}
		}, ReasonTargetOutOfReach, "9 nines"},
	} {
		changed := policy.DeepCopy()
		c.change(&changed.Spec)
		_, wrong := Declare(changed, schemes, nil)
		if wrong == nil || wrong.Reason != c.reason || !strings.Contains(wrong.Message, c.says) {
			t.Errorf("%s: %v, want %s: %s", c.intent, wrong, c.reason, c.says)
		}
	}
}

func TestReliabilityPicksTheLadder(t *testing.T) {
	policy := mediaPolicy("")
	policy.Spec.Reliability = &v1alpha1.Reliability{Nines: 9}
	choose := func(target v1alpha1.Reliability) (stripe.Ladder, error) {
		return stripe.Ladder{stripe.Replicas(3), stripe.RS(6, 2)}, nil
	}
	d, wrong := Declare(policy, nil, choose)
	if wrong != nil || d.Class.Ladder.String() != "rep(3),rs(6,2)" || d.Class.Default != stripe.Replicas(3) {
		t.Errorf("%+v, %v", d, wrong)
	}
	_, wrong = Declare(policy, nil, func(v1alpha1.Reliability) (stripe.Ladder, error) { return nil, errors.New("use 14 nodes") })
	if wrong == nil || wrong.Reason != ReasonTargetOutOfReach || !strings.Contains(wrong.Message, "use 14 nodes") {
		t.Error(wrong)
	}
}

func TestConflicts(t *testing.T) {
	old, young := time.Unix(100, 0), time.Unix(200, 0)
	claim := func(policy string, created time.Time, class string, prefixes ...string) Claim {
		return Claim{policy, created, "demo", class, prefixes}
	}
	for _, c := range []struct {
		intent string
		claims []Claim
		losers string // "loser>winner"
	}{
		{"the longest prefix wins, so nested ones stand together", []Claim{claim("a", old, "a", ""), claim("b", young, "b", "media/"), claim("c", young, "c", "media/tmp/")}, ""},
		{"of equal prefixes the older policy wins", []Claim{claim("a", young, "a", "x/"), claim("b", old, "b", "x/")}, "a>b"},
		{"of equally old ones the lesser name", []Claim{claim("b", old, "b", "x/"), claim("a", old, "a", "x/")}, "b>a"},
		{"a class belongs to one policy", []Claim{claim("a", young, "media", "x/"), claim("b", old, "media", "y/")}, "a>b"},
		{"what is refused claims nothing", []Claim{claim("a", old, "a", "x/"), claim("b", time.Unix(150, 0), "b", "x/", "y/"), claim("c", young, "c", "y/")}, "b>a"},
		{"another backend is another world", []Claim{claim("a", old, "a", "x/"), {"b", old, "other", "a", []string{"x/"}}}, ""},
	} {
		for range 2 {
			var losers []string
			for policy, wrong := range Conflicts(c.claims) {
				winner := c.losers[strings.LastIndex(c.losers, ">")+1:]
				if wrong.Reason != ReasonConflict || !strings.Contains(wrong.Message, "the older policy "+winner) {
					t.Errorf("%s: %v", c.intent, wrong)
				}
				losers = append(losers, policy+">"+winner)
			}
			if strings.Join(losers, " ") != c.losers {
				t.Errorf("%s: %v, want %q", c.intent, losers, c.losers)
			}
			for i, j := 0, len(c.claims)-1; i < j; i, j = i+1, j-1 { // whichever way they are listed
				c.claims[i], c.claims[j] = c.claims[j], c.claims[i]
			}
		}
	}
	claims := []Claim{claim("all", old, "all", ""), claim("media", old, "media", "media/"), claim("late", young, "late", "media/", "media/tmp/")}
	for key, want := range map[string]string{"logs/1": "all", "media/1": "media", "media/tmp/1": "media", "medi": "all"} {
		if policy, found := Match(claims, "demo", key); !found || policy != want {
			t.Errorf("%s falls under %s, want %s", key, policy, want)
		}
	}
	if policy, found := Match(claims, "other", "x"); found {
		t.Errorf("a key of another backend falls under %s", policy)
	}
}

package decide

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dustin/go-humanize"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// emptyBuckets are the gateways' buckets without groups: from never, by powers of two from 2^-6 to 2^20, without end.
func emptyBuckets() []HeatBucket {
	buckets := []HeatBucket{{Below: math.Ldexp(1, -6)}}
	for exponent := -6; exponent < 20; exponent++ {
		buckets = append(buckets, HeatBucket{AtLeast: math.Ldexp(1, exponent), Below: math.Ldexp(1, exponent+1)})
	}
	return append(buckets, HeatBucket{AtLeast: math.Ldexp(1, 20), Below: math.Inf(1)})
}

func bucketAt(buckets []HeatBucket, rate float64) *HeatBucket {
	for i := range buckets {
		if rate < buckets[i].Below {
			return &buckets[i]
		}
	}
	return &buckets[len(buckets)-1]
}

func quantity(text string) *resource.Quantity {
	value := resource.MustParse(text)
	return &value
}

func number[T any](value T) *T { return &value }

// mediaPolicy is a policy with a ladder and, of rules such as "rep(3)>=8" and "rs(12,2)<0.5", temperature.
func mediaPolicy(ladder string, rules ...string) *v1alpha1.RedundancyPolicy {
	policy := &v1alpha1.RedundancyPolicy{ObjectMeta: metav1.ObjectMeta{Name: "media", Generation: 1}}
	policy.Spec = v1alpha1.RedundancyPolicySpec{BackendRef: "demo", Selector: v1alpha1.Selector{Prefixes: []string{"media/"}}}
	for _, step := range strings.Fields(ladder) {
		policy.Spec.Ladder = append(policy.Spec.Ladder, v1alpha1.SchemeName(step))
	}
	for _, text := range rules {
		if policy.Spec.Temperature == nil {
			policy.Spec.Temperature = &v1alpha1.Temperature{}
		}
		at := strings.IndexAny(text, "<>")
		rule := v1alpha1.TemperatureRule{Scheme: v1alpha1.SchemeName(text[:at])}
		for _, bound := range strings.Split(text[at:], "&") {
			if value, is := strings.CutPrefix(bound, ">="); is {
				rule.AtLeast = quantity(value)
			} else {
				rule.Below = quantity(bound[1:])
			}
		}
		policy.Spec.Temperature.Rules = append(policy.Spec.Temperature.Rules, rule)
	}
	return policy
}

func pinned(t testing.TB, scheme, until string) *v1alpha1.Pin {
	t.Helper()
	return &v1alpha1.Pin{Scheme: v1alpha1.SchemeName(scheme), Until: metav1.NewTime(moment(t, until))}
}

func mustDeclare(t testing.TB, policy *v1alpha1.RedundancyPolicy) *Declaration {
	t.Helper()
	declaration, wrong := Declare(policy, nil, nil)
	if wrong != nil {
		t.Fatal(wrong.Message)
	}
	return declaration
}

func mustScheme(t testing.TB, text string) stripe.Scheme {
	t.Helper()
	scheme, err := stripe.ParseScheme(text)
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// temperatureStory answers:
//
//	policy "rep(3) rs(4,2)" rs(4,2)<1 ...   the ladder and the rules
//	hysteresis 50
//	default rs(4,2)
//	groups rs(4,2) 0.3 312 1.2GiB [unsettled]
//	active rs(4,2) 0 0.5                    a transition that has not ended
//	pin rs(4,2) 2026-03-10T00:00:00Z ada "the audit"
//	clock 2026-03-11T00:00:00Z
//	asked, incomplete, stale
//	moves
func temperatureStory(t *testing.T) func(string, []string) string {
	var policy *v1alpha1.RedundancyPolicy
	now := moment(t, "2026-03-03T12:00:00Z")
	place := Place{Backend: "demo", Heat: &ClassHeat{Began: now, Complete: true}}
	float := func(text string) float64 {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	rung := func(scheme stripe.Scheme) *RungHeat {
		for i := range place.Heat.Rungs {
			if place.Heat.Rungs[i].Scheme == scheme {
				return &place.Heat.Rungs[i]
			}
		}
		place.Heat.Rungs = append(place.Heat.Rungs, RungHeat{Scheme: scheme, Buckets: emptyBuckets()})
		return &place.Heat.Rungs[len(place.Heat.Rungs)-1]
	}
	return func(command string, arguments []string) string {
		switch command {
		case "policy":
			policy = mediaPolicy(arguments[0], arguments[1:]...)
		case "hysteresis":
			policy.Spec.Temperature.HysteresisPercent = number(int32(float(arguments[0])))
		case "default":
			policy.Spec.Default = v1alpha1.SchemeName(arguments[0])
		case "groups":
			bytes, err := humanize.ParseBytes(arguments[3])
			if err != nil {
				t.Fatal(err)
			}
			under, groups := rung(mustScheme(t, arguments[0])), int64(float(arguments[2]))
			under.Groups, under.Bytes = under.Groups+groups, under.Bytes+int64(bytes)
			bucket := bucketAt(under.Buckets, float(arguments[1]))
			bucket.Groups, bucket.Bytes = bucket.Groups+groups, bucket.Bytes+int64(bytes)
			if len(arguments) == 4 {
				bucket.SettledGroups, bucket.SettledBytes = bucket.SettledGroups+groups, bucket.SettledBytes+int64(bytes)
			}
		case "active":
			place.Active = append(place.Active, Selection{Backend: "demo", Class: "media", From: mustScheme(t, arguments[0]), Heat: HeatRange{float(arguments[1]), float(arguments[2])}})
		case "pin":
			policy.Spec.Pin = pinned(t, arguments[0], arguments[1])
			policy.Spec.Pin.By, policy.Spec.Pin.Reason = arguments[2], arguments[3]
		case "clock":
			now = moment(t, arguments[0])
		case "asked":
			place.Asked = true
		case "incomplete":
			place.Heat.Complete = false
		case "stale":
			place.LastEnded = now.Add(time.Second)
		case "moves":
			declaration := mustDeclare(t, policy).At(now)
			place.Class, place.Rules, place.Pin = &declaration.Class, declaration.Rules, nil
			if declaration.Pinned {
				place.Pin = declaration.Pin
			}
			var lines []string
			for _, move := range Moves(place) {
				lines = append(lines, fmt.Sprintf("%s to %s, %s, settled %s: %s", move.From, move.To, move.Heat, durationText(move.Settled), move.Reason))
			}
			if unknown := place.Unknown(); unknown != nil {
				return unknown.Reason + ": " + unknown.Message
			}
			if len(lines) == 0 {
				return "nothing"
			}
			return strings.Join(lines, "\n")
		default:
			t.Fatalf("no command %s", command)
		}
		return ""
	}
}

func TestTemperatureStories(t *testing.T) { tellStories(t, "temperature.txt", temperatureStory) }

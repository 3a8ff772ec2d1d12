package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// S3Options say what a lifecycle does not.
type S3Options struct {
	// Backend is the StorageBackend of the policies.
	Backend string
	// KeyPrefix goes before every prefix of the bucket, such as the bucket's name and a slash.
	KeyPrefix string
	// Schemes are the schemes of storage classes; nil: DefaultSchemes.
	Schemes map[string]string
}

// DefaultSchemes are the schemes that stand for the storage classes of S3: all of them survive two lost nodes, and every
// way from a hotter to a colder one sends nothing.
func DefaultSchemes() map[string]string {
	return map[string]string{
		"STANDARD": "rep(3)", "INTELLIGENT_TIERING": "rs(4,2)", "STANDARD_IA": "rs(4,2)", "ONEZONE_IA": "rs(4,2)",
		"GLACIER_IR": "rs(12,2)", "GLACIER": "rs(12,2)", "DEEP_ARCHIVE": "rs(12,2)",
	}
}

// lifecycle is what `aws s3api get-bucket-lifecycle-configuration` prints.
type lifecycle struct {
	Rules []map[string]json.RawMessage
}

type lifecycleFilter struct {
	Prefix                *string
	Tag                   json.RawMessage
	ObjectSizeGreaterThan *int64
	ObjectSizeLessThan    *int64
	And                   *struct {
		Prefix                *string
		Tags                  json.RawMessage
		ObjectSizeGreaterThan *int64
		ObjectSizeLessThan    *int64
	}
}

type lifecycleTransition struct {
	Days         *int
	Date         string
	StorageClass string
}

// moves are the transitions of all rules with one prefix.
type moves struct {
	name, field string
	steps       []lifecycleTransition
}

// S3Lifecycle makes a RedundancyPolicy of every prefix that the transitions of a lifecycle configuration are for. S3
// goes by age and Restripe by use: the first step's days become the dwell time, and from then on it is how often objects
// are used that takes them down, and up again.
func S3Lifecycle(text []byte, options S3Options) (*Result, error) {
	var configuration lifecycle
	if err := json.Unmarshal(text, &configuration); err != nil {
		return nil, fmt.Errorf("reading the lifecycle configuration: %w; give what `aws s3api get-bucket-lifecycle-configuration` prints", syntax(text, err))
	}
	if len(configuration.Rules) == 0 {
		return nil, fmt.Errorf("reading the lifecycle configuration: it has no Rules; give what `aws s3api get-bucket-lifecycle-configuration` prints")
	}
	if options.Schemes == nil {
		options.Schemes = DefaultSchemes()
	}
	i := s3Import{Result: &Result{}, options: options, byPrefix: map[string]*moves{}}
	for at, rule := range configuration.Rules {
		i.rule(at, rule)
	}
	for _, prefix := range i.prefixes {
		i.translate(prefix, i.byPrefix[prefix])
	}
	if len(i.Objects) > 0 {
		i.Notes = append([]string{
			"From an S3 lifecycle. S3 moves by age, Restripe by use: what is not used goes down a step, what is used again comes back.",
		}, i.Notes...)
	}
	i.nested()
	return i.Result, nil
}

// longestPrefix is the longest prefix that a policy may have.
const longestPrefix = 1024

type s3Import struct {
	*Result
	options  S3Options
	byPrefix map[string]*moves
	prefixes []string
}

// s3Refusals are the parts of a rule without a counterpart.
var s3Refusals = map[string]string{
	"Expiration":                     "Restripe deletes no objects; keep a lifecycle for that at the gateway in front",
	"NoncurrentVersionExpiration":    "objects have no versions",
	"NoncurrentVersionTransitions":   "objects have no versions",
	"NoncurrentVersionTransition":    "objects have no versions",
	"AbortIncompleteMultipartUpload": "there are no multipart uploads: a put is whole or not there",
}

func (i *s3Import) rule(at int, rule map[string]json.RawMessage) {
	field := fmt.Sprintf("Rules[%d]", at)
	var id, status string
	if name, is := rule["ID"]; is && json.Unmarshal(name, &id) == nil && id != "" {
		field += " (" + id + ")"
	}
	for _, name := range slices.Sorted(maps.Keys(rule)) {
		switch name {
		case "ID", "Status", "Filter", "Prefix", "Transitions", "Transition":
		default:
			why, known := s3Refusals[name]
			if !known {
				why = "it is not known what this means"
			}
			i.refuse(field+"."+name, "%s", why)
		}
	}
	if value, is := rule["Status"]; is && (json.Unmarshal(value, &status) != nil || status != "Enabled") {
		i.refuse(field+".Status", "the rule is %s and is left out; enable it and import again to have it", strings.Trim(string(value), `"`))
		return
	}
	prefix, expressible := i.filter(field, rule)
	if expressible && utf8.RuneCountInString(i.options.KeyPrefix+prefix) > longestPrefix {
		i.refuse(field+".Filter.Prefix", "with the prefix of the keys it is longer than %d characters; the rule is left out", longestPrefix)
		expressible = false
	}
	steps := i.steps(field, rule)
	if !expressible || len(steps) == 0 {
		return
	}
	known := i.byPrefix[prefix]
	if known == nil {
		known = &moves{name: id, field: field}
		i.byPrefix[prefix] = known
		i.prefixes = append(i.prefixes, prefix)
	} else {
		i.note("%s is for the prefix of %s as well: they became one policy.", field, known.field)
	}
	known.steps = append(known.steps, steps...)
}

// filter returns the prefix of a rule, if that is all it selects by.
func (i *s3Import) filter(field string, rule map[string]json.RawMessage) (prefix string, expressible bool) {
	if old, is := rule["Prefix"]; is {
		if err := json.Unmarshal(old, &prefix); err != nil {
			i.refuse(field+".Prefix", "it is no text; the rule is left out")
			return "", false
		}
	}
	var filter lifecycleFilter
	if text, is := rule["Filter"]; is {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&filter); err != nil {
			i.refuse(field+".Filter", "it cannot be read (%v); the rule is left out", err)
			return "", false
		}
	}
	expressible = true
	refuse := func(present bool, name, why string) {
		if present {
			i.refuse(field+".Filter."+name, "%s; the rule is left out, as it would be for too many objects", why)
			expressible = false
		}
	}
	const tags, sizes = "a policy selects by prefix, objects have no tags", "a policy selects by prefix, not by size"
	refuse(filter.Tag != nil, "Tag", tags)
	refuse(filter.ObjectSizeGreaterThan != nil, "ObjectSizeGreaterThan", sizes)
	refuse(filter.ObjectSizeLessThan != nil, "ObjectSizeLessThan", sizes)
	if filter.Prefix != nil {
		prefix = *filter.Prefix
	}
	if and := filter.And; and != nil {
		refuse(and.Tags != nil, "And.Tags", tags)
		refuse(and.ObjectSizeGreaterThan != nil, "And.ObjectSizeGreaterThan", sizes)
		refuse(and.ObjectSizeLessThan != nil, "And.ObjectSizeLessThan", sizes)
		if and.Prefix != nil {
			prefix = *and.Prefix
		}
	}
	return prefix, expressible
}

// steps returns the transitions of a rule that can be expressed.
func (i *s3Import) steps(field string, rule map[string]json.RawMessage) []lifecycleTransition {
	var all, one []lifecycleTransition
	if text, is := rule["Transitions"]; is && json.Unmarshal(text, &all) != nil {
		i.refuse(field+".Transitions", "it is no list of transitions with Days and StorageClass")
	}
	if text, is := rule["Transition"]; is { // of the older API
		one = make([]lifecycleTransition, 1)
		if json.Unmarshal(text, &one[0]) != nil {
			i.refuse(field+".Transition", "it is no transition with Days and StorageClass")
			one = nil
		}
	}
	var steps []lifecycleTransition
	for at, step := range append(all, one...) {
		where := fmt.Sprintf("%s.Transitions[%d]", field, at)
		scheme, known := i.options.Schemes[step.StorageClass]
		_, err := stripe.ParseScheme(scheme)
		switch {
		case step.Date != "":
			i.refuse(where+".Date", "objects move by how they are used, not on a date")
		case step.Days == nil || *step.Days < 0 || *step.Days > 36500:
			i.refuse(where+".Days", "it is no number of days from 0 to 36500")
		case !known:
			i.refuse(where+".StorageClass", "no scheme stands for %s; give one", step.StorageClass)
		case err != nil:
			i.refuse(where+".StorageClass", "the scheme given for %s is no code: %v", step.StorageClass, err)
		default:
			steps = append(steps, step)
		}
	}
	return steps
}

// translate makes the policy of a prefix.
func (i *s3Import) translate(prefix string, m *moves) {
	slices.SortStableFunc(m.steps, func(a, b lifecycleTransition) int { return *a.Days - *b.Days })
	ladder := []v1alpha1.SchemeName{v1alpha1.SchemeName(i.options.Schemes["STANDARD"])}
	if ladder[0] == "" {
		ladder[0] = "rep(3)"
	}
	first := 0
	for _, step := range m.steps {
		scheme := v1alpha1.SchemeName(i.options.Schemes[step.StorageClass])
		switch {
		case slices.Contains(ladder, scheme):
			i.note("%s: %s is %s, which the objects are under by then.", m.field, step.StorageClass, scheme)
		case *step.Days == 0:
			ladder[0] = scheme
			i.note("%s: %s after 0 days: objects are written as %s.", m.field, step.StorageClass, scheme)
		default:
			ladder = append(ladder, scheme)
			if first == 0 {
				first = *step.Days
				i.note("%s: %s after %d days became %s once unused, %d days after it was written or last moved at the earliest (dwell).",
					m.field, step.StorageClass, *step.Days, scheme, *step.Days)
			} else {
				i.refuse(fmt.Sprintf("%s.Transitions (%s).Days", m.field, step.StorageClass),
					"%d days cannot be told from %d: age is not known, and a class has one dwell time; %s is for what is used least", *step.Days, first, scheme)
			}
		}
	}
	spec := v1alpha1.RedundancyPolicySpec{
		BackendRef: i.options.Backend,
		Selector:   v1alpha1.Selector{Prefixes: []string{i.options.KeyPrefix + prefix}},
		Ladder:     ladder,
	}
	if len(ladder) > 1 {
		spec.Temperature = byUse(ladder, first)
	}
	i.policy(i.objectName("RedundancyPolicy", cmp.Or(m.name, prefix), "all"), spec)
}

// halfLife makes a single access count as less than the lowest bound after eight days.
const halfLife = 7 * 24 * time.Hour

// byUse divides use into as many bands as the ladder has steps: the lowest is less than once in 16 days, the next ones
// reach to four times as much each.
func byUse(ladder []v1alpha1.SchemeName, days int) *v1alpha1.Temperature {
	rules := make([]v1alpha1.TemperatureRule, len(ladder))
	bound := 0.0625
	for at := len(ladder) - 1; at > 0; at-- {
		quantity := resource.MustParse(strconv.FormatFloat(bound, 'f', -1, 64))
		rules[at].Below, rules[at-1].AtLeast = &quantity, &quantity
		bound *= 4
	}
	for at, scheme := range ladder {
		rules[at].Scheme = scheme
	}
	return &v1alpha1.Temperature{
		HalfLife: metav1.Duration{Duration: halfLife},
		Dwell:    metav1.Duration{Duration: time.Duration(days) * 24 * time.Hour},
		Rules:    rules,
	}
}

// nested says that of nested prefixes only the longest counts here.
func (i *s3Import) nested() {
	for _, outer := range i.prefixes {
		for _, inner := range i.prefixes {
			if outer != inner && strings.HasPrefix(inner, outer) {
				i.note("Prefix %q lies in %q: in S3 both rules hold for it, here the policy with the longer prefix alone.", inner, outer)
			}
		}
	}
}

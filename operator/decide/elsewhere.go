package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// ClassCount counts objects of one class.
type ClassCount struct {
	Class          string
	Objects, Bytes int64
}

// String is "class media (40 objects, 12 MiB)".
func (c ClassCount) String() string {
	return fmt.Sprintf("class %s (%s, %s)", c.Class, words.Count(c.Objects, "object"), words.Bytes(c.Bytes))
}

// Elsewhere is what a count of objects found beside a class: an object keeps the class that it was put into, whatever the
// prefixes of classes become.
type Elsewhere struct {
	At      time.Time    // of the count
	Current bool         // the class had the prefixes it has now
	Others  []ClassCount // whose keys belong to the class, and which are of other classes
	Kept    []ClassCount // of the class, whose keys belong to other classes
}

// problem is why objects that a policy selects are not its own, or may not be; nil if they are.
func (e *Elsewhere) problem() *Problem {
	switch {
	case e == nil:
		return nil
	case !e.Current:
		return problem(ReasonObjectsNotCounted, "whether other classes have objects under its prefixes is being counted")
	}
	return Strays(e.Others, ", as counted at "+words.Time(e.At))
}

// Strays says which objects a policy selects that it does not manage, as they are of other classes, and what else there is to
// say of the count; nil if there are none.
func Strays(others []ClassCount, counted string) *Problem {
	if len(others) == 0 {
		return nil
	}
	return problem(ReasonObjectsElsewhere,
		"objects under its prefixes are of %s%s; an object keeps the class it was put into: "+
			"bring them over with `restripe transition start --into`, or select their class",
		classesText(others), counted)
}

// kept says which objects of the class its prefixes do not select.
func (e *Elsewhere) kept() string {
	if e == nil || !e.Current || len(e.Kept) == 0 {
		return ""
	}
	var all ClassCount
	for _, count := range e.Kept {
		all.Objects, all.Bytes = all.Objects+count.Objects, all.Bytes+count.Bytes
	}
	return fmt.Sprintf("with %s (%s) that its prefixes do not select", words.Count(all.Objects, "object"), words.Bytes(all.Bytes))
}

// mostClassesNamed is how many classes a message names.
const mostClassesNamed = 5

func classesText(counts []ClassCount) string {
	counts = slices.SortedFunc(slices.Values(counts), func(a, b ClassCount) int {
		if a.Objects != b.Objects {
			return int(b.Objects - a.Objects)
		}
		return strings.Compare(a.Class, b.Class)
	})
	parts := []string{}
	for _, count := range counts[:min(len(counts), mostClassesNamed)] {
		parts = append(parts, count.String())
	}
	if more := len(counts) - mostClassesNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// settled reports whether a condition Converged says that nothing is left to move: objects of other classes are nothing
// that the policy could move.
func settled(converged *metav1.Condition) bool {
	return converged.Status == metav1.ConditionTrue || converged.Reason == ReasonObjectsElsewhere || converged.Reason == ReasonObjectsNotCounted
}

// managed says whether every class with objects has a policy, or is as a class file says.
func (v *BackendView) managed(c *conditions) {
	switch {
	case v.Unreachable != nil:
		if before := meta.FindStatusCondition(v.Backend.Status.Conditions, v1alpha1.ConditionManaged); before != nil {
			c.set(v1alpha1.ConditionManaged, before.Status, before.Reason, before.Message)
		}
	case v.Unmanaged == nil:
		c.unknown(v1alpha1.ConditionManaged, ReasonObjectsNotCounted, "the objects have not been counted yet")
	case len(v.Unmanaged) > 0:
		c.no(v1alpha1.ConditionManaged, ReasonClassesUnmanaged,
			"no policy manages "+classesText(v.Unmanaged)+"; declare one for the class, or put the objects again")
	default:
		c.yes(v1alpha1.ConditionManaged, ReasonManaged, "every class with objects has a policy, or is as a class file says")
	}
}

package decide

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// Repair is what a backend declares of rebuilding what was lost. The zero value declares nothing.
type Repair struct {
	Total, Node, Domain *int64 // bytes per second; nil: as the gateways have it
	Windows             Windows
	owner               string // whom the gateways are told that it is deferred by
}

// DeclareRepair reads spec.repair of a backend.
func DeclareRepair(backend *v1alpha1.StorageBackend) (Repair, *Problem) {
	declared := Repair{owner: "the repair windows of backend " + backend.Name}
	spec := backend.Spec.Repair
	if spec == nil {
		return declared, nil
	}
	for _, field := range []struct {
		name  string
		value *resource.Quantity
		limit **int64
	}{
		{"bytesPerSecond", spec.BytesPerSecond, &declared.Total},
		{"nodeBytesPerSecond", spec.NodeBytesPerSecond, &declared.Node},
		{"failureDomainBytesPerSecond", spec.FailureDomainBytesPerSecond, &declared.Domain},
	} {
		if field.value == nil {
			continue
		}
		rate := field.value.Value()
		if rate <= 0 {
			return Repair{}, problem(ReasonInvalidBudget, "repair.%s %s lets nothing be rebuilt; give a positive rate such as 100Mi", field.name, field.value)
		}
		*field.limit = &rate
	}
	windows, wrong := ParseWindows(spec.Windows)
	if wrong != nil {
		return Repair{}, &Problem{Reason: wrong.Reason, Message: "repair." + wrong.Message}
	}
	declared.Windows = windows
	return declared, nil
}

// RepairSight is what the gateways say of repair.
type RepairSight struct {
	Total, Node, Domain int64     // bytes per second; 0: no limit
	DeferredUntil       time.Time // zero: it is not deferred
	DeferredBy          string
	Waiting             int // groups that wait for that
}

// RepairOrders are what the gateways are to be told of repair: limits that differ, and a deferral; nil: as it is.
type RepairOrders struct {
	Total, Node, Domain *int64
	DeferUntil          *time.Time // not after now: no more
	By                  string
}

// unopened is how long repair is deferred at a time by windows that do not open within a year.
const unopened = 30 * 24 * time.Hour

// Orders are what makes the gateways do what is declared. What somebody else deferred for longer stays deferred.
func (r *Repair) Orders(now time.Time, seen RepairSight) RepairOrders {
	var orders RepairOrders
	for _, limit := range []struct {
		declared *int64
		seen     int64
		order    **int64
	}{{r.Total, seen.Total, &orders.Total}, {r.Node, seen.Node, &orders.Node}, {r.Domain, seen.Domain, &orders.Domain}} {
		if limit.declared != nil && *limit.declared != limit.seen {
			*limit.order = limit.declared
		}
	}
	own, permission := seen.DeferredBy == r.owner, r.Windows.At(now)
	switch until := permission.Next; {
	case permission.Start && own:
		orders.DeferUntil = &now
	case permission.Start:
	case until.IsZero() && own && seen.DeferredUntil.After(now.Add(unopened/2)):
	case until.IsZero():
		until = now.Add(unopened)
		orders.DeferUntil, orders.By = &until, r.owner
	case own && !seen.DeferredUntil.Equal(until), !own && seen.DeferredUntil.Before(until):
		orders.DeferUntil, orders.By = &until, r.owner
	}
	return orders
}

// waits says what repair waits for; empty: nothing does.
func (s *RepairSight) waits() string {
	if s.Waiting == 0 || s.DeferredUntil.IsZero() {
		return ""
	}
	text := words.Count(int64(s.Waiting), "group") + " that can wait will be rebuilt after " + words.Time(s.DeferredUntil)
	if s.DeferredBy != "" {
		text += ", as " + s.DeferredBy + " says"
	}
	return text
}

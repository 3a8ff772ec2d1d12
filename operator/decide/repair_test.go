package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

func repairOf(t *testing.T, spec *v1alpha1.BackendRepair) Repair {
	t.Helper()
	declared, wrong := DeclareRepair(&v1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: "disks"}, Spec: v1alpha1.StorageBackendSpec{Repair: spec}})
	if wrong != nil {
		t.Fatal(wrong)
	}
	return declared
}

func (o RepairOrders) String() string {
	var words []string
	for _, limit := range []struct {
		name  string
		value *int64
	}{{"total", o.Total}, {"node", o.Node}, {"domain", o.Domain}} {
		if limit.value != nil {
			words = append(words, fmt.Sprintf("%s %d", limit.name, *limit.value))
		}
	}
	if o.DeferUntil != nil {
		words = append(words, strings.TrimSpace("defer until "+o.DeferUntil.UTC().Format("2 Jan 15:04")+" "+o.By))
	}
	return strings.Join(words, ", ")
}

func TestOrdersOfRepair(t *testing.T) {
	at := func(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC) }
	rate := func(bytes int64) *resource.Quantity { return resource.NewQuantity(bytes, resource.BinarySI) }
	nights := []v1alpha1.Window{{Schedule: "0 22 * * *", Duration: metav1.Duration{Duration: 8 * time.Hour}}}
	never := []v1alpha1.Window{{Kind: v1alpha1.WindowDeny, Schedule: "@daily", Duration: metav1.Duration{Duration: 24 * time.Hour}}}
	const own = "the repair windows of backend disks"
	for _, c := range []struct {
		intent string
		spec   *v1alpha1.BackendRepair
		now    time.Time
		seen   RepairSight
		want   string
	}{
		{"nothing is declared", nil, at(1, 12), RepairSight{Node: 5}, ""},
		{"limits as they are", &v1alpha1.BackendRepair{NodeBytesPerSecond: rate(5)}, at(1, 12), RepairSight{Node: 5, Total: 9}, ""},
		{"limits that differ", &v1alpha1.BackendRepair{BytesPerSecond: rate(7), NodeBytesPerSecond: rate(5), FailureDomainBytesPerSecond: rate(6)}, at(1, 12), RepairSight{Node: 5}, "total 7, domain 6"},
		{"by day", &v1alpha1.BackendRepair{Windows: nights}, at(1, 12), RepairSight{}, "defer until 1 Mar 22:00 " + own},
		{"by day, as it is", &v1alpha1.BackendRepair{Windows: nights}, at(1, 12), RepairSight{DeferredUntil: at(1, 22), DeferredBy: own}, ""},
		{"by day, after the windows changed", &v1alpha1.BackendRepair{Windows: nights}, at(1, 12), RepairSight{DeferredUntil: at(2, 3), DeferredBy: own}, "defer until 1 Mar 22:00 " + own},
		{"by day, somebody wants less", &v1alpha1.BackendRepair{Windows: nights}, at(1, 12), RepairSight{DeferredUntil: at(1, 14), DeferredBy: "ada"}, "defer until 1 Mar 22:00 " + own},
		{"by day, somebody wants more", &v1alpha1.BackendRepair{Windows: nights}, at(1, 12), RepairSight{DeferredUntil: at(3, 14), DeferredBy: "ada"}, ""},
		{"by night", &v1alpha1.BackendRepair{Windows: nights}, at(1, 23), RepairSight{}, ""},
		{"by night, still deferred", &v1alpha1.BackendRepair{Windows: nights}, at(1, 23), RepairSight{DeferredUntil: at(2, 22), DeferredBy: own}, "defer until 1 Mar 23:00"},
		{"by night, deferred by somebody", &v1alpha1.BackendRepair{Windows: nights}, at(1, 23), RepairSight{DeferredUntil: at(2, 22), DeferredBy: "ada"}, ""},
		{"the windows were taken out", nil, at(1, 12), RepairSight{DeferredUntil: at(1, 22), DeferredBy: own}, "defer until 1 Mar 12:00"},
		{"windows that never open", &v1alpha1.BackendRepair{Windows: never}, at(1, 12), RepairSight{}, "defer until 31 Mar 12:00 " + own},
		{"windows that never open, as it is", &v1alpha1.BackendRepair{Windows: never}, at(1, 13), RepairSight{DeferredUntil: at(31, 12), DeferredBy: own}, ""},
		{"windows that never open, weeks later", &v1alpha1.BackendRepair{Windows: never}, at(20, 12), RepairSight{DeferredUntil: at(31, 12), DeferredBy: own}, "defer until 19 Apr 12:00 " + own},
	} {
		declared := repairOf(t, c.spec)
		if got := declared.Orders(c.now, c.seen).String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.intent, got, c.want)
		}
	}
}

func TestRepairThatCannotBe(t *testing.T) {
	for text, spec := range map[string]v1alpha1.BackendRepair{
		"repair.nodeBytesPerSecond 0 lets nothing be rebuilt": {NodeBytesPerSecond: resource.NewQuantity(0, resource.BinarySI)},
		"repair.windows[0].schedule":                          {Windows: []v1alpha1.Window{{Schedule: "0 25 * * *", Duration: metav1.Duration{Duration: time.Hour}}}},
	} {
		if _, wrong := DeclareRepair(&v1alpha1.StorageBackend{Spec: v1alpha1.StorageBackendSpec{Repair: &spec}}); wrong == nil || !strings.HasPrefix(wrong.Message, text) {
			t.Errorf("%q: %v", text, wrong)
		}
	}
}

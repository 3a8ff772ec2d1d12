package operator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/operatortest"
)

// TestRealGateways: what is written as copies is coded when it cools, by the operator over HTTP, and reads back.
func TestRealGateways(t *testing.T) {
	cluster := operatortest.Start(t, 9)
	g := cluster.Gateway
	w := newWorld(t)
	w.apply("apiVersion: restripe.io/v1alpha1\nkind: StorageBackend\nmetadata: {name: real}\nspec: {type: file, gateways: ['"+cluster.Front.URL+"']}\n",
		`apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: cooling}
spec:
  backendRef: real
  selector: {prefixes: [cool/]}
  ladder: [rep(3), 'rs(6,2)']
  packing: {groupBytes: 64Ki, below: 1Ki, deadAtMostPercent: 40, mode: batch, delay: 20ms}
  repairOnRead: wake
  temperature: {halfLife: 1s, dwell: 1s, rules: [{scheme: 'rs(6,2)', below: 1}]}
  budget: {bytesPerSecond: 64Mi, nodeBytesPerSecond: 32Mi, foregroundLatency: 10s}
`)
	w.operator(func(o *operator.Options) {
		o.Clock, o.Dial = clock.RealClock{}, nil
		o.Intervals = controller.Intervals{Look: 300 * time.Millisecond, Progress: 100 * time.Millisecond}
	})
	w.eventually("the class is declared", func() bool {
		classes := g.Classes()
		for _, class := range classes {
			if class.Name == "cooling" {
				return class.DeadAtMost == 40 && class.PackMode == api.PackBatch && class.PackDelay == "20ms" && class.PackBelow == 1<<10 &&
					class.RepairOnRead == api.RepairWake
			}
		}
		return false
	})
	objects := map[string][]byte{}
	random := rand.NewChaCha8([32]byte{1})
	for i := range 20 {
		data := make([]byte, 100<<10)
		random.Read(data)
		key := fmt.Sprintf("cool/%d", i)
		objects[key] = data
		if _, err := g.Put(t.Context(), key, bytes.NewReader(data), api.PutOptions{Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("everything is coded", func() bool {
		p := w.policy("cooling")
		if !is(p, p.Status.Conditions, v1alpha1.ConditionConverged) {
			return false
		}
		for _, rung := range p.Status.Rungs {
			if rung.Scheme == "rs(6,2)" && rung.Groups >= 20 {
				return true
			}
		}
		return false
	})
	for key, want := range objects {
		var got bytes.Buffer
		reader, err := g.Open(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.WriteTo(t.Context(), &got, 0, reader.Size()); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%s does not read back: %v", key, err)
		}
	}
	for _, x := range w.transitions() {
		if x.Status.Summary.State == "Done" && (x.Status.Progress.BytesSentMeasured != 0 || !strings.HasPrefix(x.Status.To, "rs")) {
			t.Errorf("merging copies sent %d bytes", x.Status.Progress.BytesSentMeasured)
		}
	}
	w.eventually("what may be lost is counted", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "real")
		return b.Status.CanLose != nil && *b.Status.CanLose == 2 && strings.Contains(degraded(b), "9 of 9 nodes up; every object survives the loss of 2 more nodes")
	})
	cluster.StopAgent(3)
	w.eventually("the loss of a node is counted", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "real")
		return b.Status.CanLose != nil && *b.Status.CanLose == 1 && is(b, b.Status.Conditions, v1alpha1.ConditionDegraded) &&
			strings.Contains(degraded(b), "miss blocks; every object survives the loss of 1 more node")
	})
	for _, step := range []struct {
		repair string
		want   api.RepairState
	}{
		{`{"bytesPerSecond":"8Mi","windows":[{"kind":"Deny","schedule":"@daily","duration":"24h"}]}`, api.RepairDeferred},
		{`null`, api.RepairIdle},
	} {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "real")
		w.patch(b, `{"spec":{"repair":`+step.repair+`}}`)
		w.eventually("repair is "+string(step.want), func() bool {
			status, err := g.RepairStatus(t.Context())
			return err == nil && status.State == step.want && status.BytesPerSecond == 8<<20
		})
	}
	w.delete(w.policy("cooling"))
	w.gone(&v1alpha1.RedundancyPolicy{}, "cooling")
}

// A plan judges by what its policy says, not by what is in force: what is settled under the dwell of the file moves, and what is not
// yet is told.
func TestAPlanJudgesByItsOwnPolicy(t *testing.T) {
	cluster := operatortest.Start(t, 9)
	g := cluster.Gateway
	policy := func(dwell string, prefixes ...string) *v1alpha1.RedundancyPolicy {
		p := &v1alpha1.RedundancyPolicy{}
		p.Name = "slow"
		text := `{"backendRef":"real","selector":{"prefixes":["` + strings.Join(prefixes, `","`) + `"]},"ladder":["rep(3)","rs(6,2)"],"packing":{"below":"0"},
			"temperature":{"halfLife":"1h","dwell":"` + dwell + `","rules":[{"scheme":"rs(6,2)","below":"1000"}]}}`
		if err := json.Unmarshal([]byte(text), &p.Spec); err != nil {
			t.Fatal(err)
		}
		return p
	}
	slow := api.ClassSpec{
		Name: "slow", Ladder: "rep(3),rs(6,2)", Prefixes: []string{"slow/"}, PackBelow: "0B", HalfLife: "1h", Dwell: "6h",
	}
	if _, err := g.PutClass(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	if _, err := g.PutClass(t.Context(), api.ClassSpec{Name: "rest", Ladder: "rep(3)", Prefixes: []string{"other"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		for _, prefix := range []string{"slow/", "other/"} {
			if _, err := g.Put(t.Context(), fmt.Sprint(prefix, i), bytes.NewReader(make([]byte, 100<<10)), api.PutOptions{Size: 100 << 10}); err != nil {
				t.Fatal(err)
			}
		}
	}
	w := newWorld(t)
	w.eventually("the objects are counted and a second has passed", func() bool {
		report, err := g.HeatUnder(t.Context(), "slow", time.Second)
		settled := int64(0)
		for _, class := range report.Classes {
			for _, bucket := range class.Rungs[0].Buckets {
				settled += bucket.SettledGroups
			}
		}
		return err == nil && settled == 10 && len(g.Heat().Classes) > 0 && g.Heat().Complete
	})
	backend := &v1alpha1.StorageBackend{}
	backend.Name = "real"
	backend.Spec.Gateways = []v1alpha1.GatewayAddress{v1alpha1.GatewayAddress(cluster.Front.URL)}
	backend.Status.LastSeen = &metav1.Time{Time: time.Now()}
	for i := range 9 {
		backend.Status.Nodes = append(backend.Status.Nodes, v1alpha1.NodeStatus{Name: fmt.Sprint("n", i), State: "up"})
	}
	plan := func(p *v1alpha1.RedundancyPolicy) *controller.Forecast {
		t.Helper()
		var f *controller.Forecast
		w.eventually("the gateways know the heat", func() (known bool) {
			var err error
			f, err = controller.Preview(t.Context(), time.Now(), gateways.Dial(gateways.Credentials{}), p, backend, decide.Schemes{}, nil)
			if err != nil || f.Refusal != nil {
				t.Fatal(err, f.Refusal)
			}
			return f.Unknown == nil
		})
		return f
	}
	if f := plan(policy("6h", "slow/")); len(f.Choice.Create) != 0 || len(f.Later) != 1 || f.Later[0].Groups != 10 {
		t.Errorf("under the dwell in force it moves %+v, and later %+v", f.Choice.Create, f.Later)
	}
	f := plan(policy("1s", "slow/", "other/"))
	if len(f.Choice.Create) != 1 || f.Choice.Create[0].Estimate.Groups != 10 || len(f.Later) != 0 {
		t.Errorf("under its own dwell it moves %+v, and later %+v", f.Choice.Create, f.Later)
	}
	said := ""
	for _, warning := range f.Warnings {
		said += warning.Message + "\n"
	}
	if !strings.Contains(said, "objects under its prefixes are of class rest (10 objects, ") {
		t.Errorf("of what it would not manage it says\n%s", said)
	}
}

// degraded is what a backend says of its redundancy.
func degraded(b *v1alpha1.StorageBackend) string {
	return meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionDegraded).Message
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/policies"
)

// demo is a demonstration that runs.
type demo struct {
	session *session
	flags   demoFlags
	meter   *meter
	cluster *launch.Cluster
	server  *apiServer
	gateway *client.Client
	files   *tree
	began   time.Time
	reader  *demoReader
	policy  string // of the objects, and their class

	told   map[string]toldState // by transition, what was said of it
	killed string               // what became of the victim
}

// toldState is what was said of a transition.
type toldState int

const (
	toldCreated toldState = iota + 1
	toldEnded
)

func newDemo(s *session, f demoFlags, m *meter, running *machine, files *tree, began time.Time) (*demo, error) {
	server, err := s.apiServer(running.control.Kubeconfig())
	if err != nil {
		return nil, err
	}
	c, err := client.New(running.cluster.Gateway())
	if err != nil {
		return nil, err
	}
	return &demo{
		session: s, flags: f, meter: m, cluster: running.cluster, server: server, gateway: c, files: files, began: began,
		reader: &demoReader{client: c, files: files}, policy: strings.TrimSuffix(demoPrefix, "/"), told: map[string]toldState{},
	}, nil
}

// say tells what happens, and when since the start.
func (d *demo) say(format string, values ...any) {
	d.meter.say("%3.0f s  %s", time.Since(d.began).Seconds(), fmt.Sprintf(format, values...))
}

// run is the whole demonstration, from the policies to the table.
func (d *demo) run(ctx context.Context) error {
	if err := d.declare(ctx); err != nil {
		return err
	}
	first, second := d.files.popular(1, 4), d.files.popular(3, 4)
	stored := []string{}
	for _, phase := range []func() error{
		func() error { return d.put(ctx) },
		func() error { return d.cool(ctx, &first) },
		func() error { return d.heat(ctx, &second) },
	} {
		if err := phase(); err != nil {
			return err
		}
		now, err := d.stored(ctx)
		if err != nil {
			return err
		}
		stored = append(stored, now)
	}
	// Reading everything makes everything hot: what the operator would make of that is left out.
	held, err := d.server.stopPolicy(ctx, d.policy, v1alpha1.StopHold)
	if err != nil {
		return err
	}
	d.say("%s", held)
	verified, err := d.verifyAll(ctx)
	if err != nil {
		return err
	}
	lines, err := d.report(ctx)
	if err != nil {
		return err
	}
	lines = append(lines, fmt.Sprintf("Stored: %s after the puts, %s with all but %s cooled, %s with what was hot of another %s back.", stored[0], stored[1], words.Bytes(first.bytes), stored[2], words.Bytes(second.bytes)),
		fmt.Sprintf("While all this went on %s objects (%s) were read and compared with their files, and all %s once more at the end in %s: every byte was right.",
			words.Number(d.reader.verified.Load()), words.Bytes(d.reader.bytes.Load()), words.Number(int64(len(d.files.files))), words.Span(verified)), d.killed)
	return writeLines(d.session.out, lines)
}

// declarePatience bounds the wait for the operator to take up the policies.
const declarePatience = time.Minute

// declare applies the policies and waits until the gateway has the class.
func (d *demo) declare(ctx context.Context) error {
	text, err := policies.Examples.ReadFile(demoPolicies)
	if err != nil {
		return fmt.Errorf("reading the policies of the demonstration: %w", err)
	}
	known, err := d.server.known(ctx)
	if err != nil {
		return err
	}
	objects, findings := policies.Check(policies.Options{Known: known}, policies.Source{Name: "policies/" + demoPolicies, Format: policies.YAML, Text: text})
	if wrong := findings.Errors(); len(wrong) > 0 {
		return wrong
	}
	d.say("restripe apply -f policies/%s", demoPolicies)
	for _, object := range objects {
		o, err := d.server.send(ctx, object, sending{})
		if err != nil {
			return err
		}
		d.say("  %s/%s %s", o.kind, o.name, o.verb())
	}
	return d.until(ctx, declarePatience, nil, func() string { return "the operator takes up the policies" }, func() (bool, error) {
		classes, err := d.gateway.Classes(ctx)
		for _, class := range classes {
			if class.Name == d.policy {
				return true, err
			}
		}
		return false, err
	})
}

// put stores the tree, as what the policy says new objects are stored as.
func (d *demo) put(ctx context.Context) error {
	begin := time.Now()
	var done progress
	stop := d.meter.watch(func() string { return "put " + d.files.line(&done, time.Since(begin)) })
	err := d.files.put(ctx, d.gateway, client.PutOptions{}, d.flags.jobs, &done)
	stop()
	if err != nil {
		return err
	}
	d.say("Stored %s files, %s, under %s in %s", words.Number(int64(len(d.files.files))),
		words.Bytes(d.files.bytes), demoPrefix, words.Span(time.Since(begin)))
	return nil
}

// coolPatience and heatPatience bound the wait for the operator to move what has cooled or heated: far more than it
// takes.
const (
	coolPatience = 10 * time.Minute
	heatPatience = 5 * time.Minute
)

// cool waits until most is on the last step of its ladder, while a part is read again and again and stays where it is.
func (d *demo) cool(ctx context.Context, popular *tree) error {
	d.say("%s of them, %s, are popular: %d readers read them again and again; nobody reads the others", words.Number(int64(len(popular.files))), words.Bytes(popular.bytes), popularReaders)
	began := time.Now()
	reading := d.reader.crowd(ctx, popular.files)
	var class api.ClassHeat
	err := d.until(ctx, coolPatience, reading, func() string {
		return fmt.Sprintf("cooling: %s; %s objects verified", rungsText(&class), words.Number(d.reader.verified.Load()))
	}, func() (bool, error) {
		report, err := d.gateway.Heat(ctx)
		if err != nil {
			return false, patient(err)
		}
		class = classOf(&report, d.policy)
		return report.Complete && report.Began.After(began) && cooled(&class), nil
	})
	return errors.Join(err, reading.stop())
}

// demoWarm is the heat, in accesses a day, below which the policy of the demonstration leaves nothing that it has moved.
const demoWarm = 4096

// cooled reports whether most groups are on the last step of the ladder, and so are those that are cold, but for a few.
func cooled(class *api.ClassHeat) bool {
	all, cold := int64(0), int64(0)
	for i, rung := range class.Rungs {
		all += rung.Groups
		for at, bucket := range rung.Buckets {
			if i < len(class.Rungs)-1 && api.HeatEdge(at+1) <= demoWarm {
				cold += bucket.Groups
			}
		}
	}
	return all > 0 && class.Rungs[len(class.Rungs)-1].Groups > all/2 && cold <= all/50
}

// heatLeast is how long it takes at least until what is read again and again is as hot as it gets, and moved.
const heatLeast = 12 * time.Second

// heat reads another part again and again until the operator has taken what became hot back to the first step, and kills
// an agent in the middle of that.
func (d *demo) heat(ctx context.Context, popular *tree) error {
	d.say("Now others are popular instead: %s files, %s", words.Number(int64(len(popular.files))), words.Bytes(popular.bytes))
	reading := d.reader.crowd(ctx, popular.files)
	began := time.Now()
	var class api.ClassHeat
	hit := ""
	err := d.until(ctx, heatPatience, reading, func() string {
		return fmt.Sprintf("heating: %s; %s objects verified", rungsText(&class), words.Number(d.reader.verified.Load()))
	}, func() (bool, error) {
		report, err := d.gateway.Heat(ctx)
		if err != nil {
			return false, patient(err)
		}
		class = classOf(&report, d.policy)
		if hit == "" && len(class.Rungs) > 0 {
			if hit, err = d.strike(ctx, class.Rungs[0].Scheme); err != nil {
				return false, err
			}
		}
		return hit != "" && d.told[hit] == toldEnded && time.Since(began) > heatLeast, nil
	})
	return errors.Join(err, reading.stop())
}

// strike kills an agent if a transition to the scheme runs, and returns that transition's name.
func (d *demo) strike(ctx context.Context, to string) (string, error) {
	transitions, err := d.transitions(ctx)
	if err != nil {
		return "", err
	}
	for i := range transitions {
		t := &transitions[i]
		if t.Status.To != to || t.Status.CompletionTime != nil || t.Status.Job == "" {
			continue
		}
		d.say("Killing agent %s (process %d) in the middle of %s", demoVictim, d.cluster.Pids()[demoVictim], t.Name)
		d.killed = fmt.Sprintf("Agent %s was killed in the middle of %s and started again; the transition went on and completed.", demoVictim, t.Name)
		return t.Name, d.cluster.Kill(demoVictim)
	}
	return "", nil
}

// lookEvery is how often the demonstration looks at the transitions.
const lookEvery = 200 * time.Millisecond

// errPatience ends a wait for something that should have happened long ago.
var errPatience = errors.New("it takes too long")

// until looks at the transitions and tells of them until done, or until the reading finds something wrong.
func (d *demo) until(ctx context.Context, patience time.Duration, reading *reading, line func() string, done func() (bool, error)) error {
	defer d.meter.clear()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	deadline := time.Now().Add(patience)
	for {
		if err := d.tell(ctx); err != nil {
			return err
		}
		if reading != nil {
			if err := reading.failure(); err != nil {
				return err
			}
		}
		ended, err := done()
		if err != nil || ended {
			return err
		}
		d.meter.show(time.Now(), line)
		select {
		case now := <-ticker.C:
			if now.After(deadline) {
				return fmt.Errorf("%w: after %s: %s; %s", errPatience, words.Span(patience), line(), d.conditions(ctx))
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// conditions says why the policy is not where it should be.
func (d *demo) conditions(ctx context.Context) string {
	var policy v1alpha1.RedundancyPolicy
	if err := d.server.read(ctx, kindNamed("policy"), d.policy, &policy); err != nil {
		return err.Error()
	}
	var said []string
	for _, name := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionFeasible, v1alpha1.ConditionConverged} {
		if c := meta.FindStatusCondition(policy.Status.Conditions, name); c != nil && c.Status != metav1.ConditionTrue {
			said = append(said, c.Message)
		}
	}
	return strings.Join(said, "; ")
}

// transitions lists the Transition objects of the policy, oldest first.
func (d *demo) transitions(ctx context.Context) ([]v1alpha1.Transition, error) {
	var list v1alpha1.TransitionList
	if err := d.server.List(ctx, &list); err != nil {
		return nil, d.server.explain(err)
	}
	return list.Items, nil
}

// tell says what transitions were made, and what became of them.
func (d *demo) tell(ctx context.Context) error {
	list, err := d.transitions(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		t := &list[i]
		if d.told[t.Name] == 0 {
			d.told[t.Name] = toldCreated
			d.say("The operator made %s: %s", t.Name, t.Spec.Reason)
		}
		if t.Status.CompletionTime == nil {
			continue
		}
		if progress := t.Status.Progress; d.told[t.Name] != toldEnded && progress != nil {
			d.told[t.Name] = toldEnded
			if progress.GroupsDone == 0 {
				continue // they cooled or heated once more meanwhile
			}
			d.say("  %s is %s: %s, %s, %s sent (predicted %s)", t.Name, strings.ToLower(t.Status.Summary.State), words.Count(progress.GroupsDone, "group"),
				words.Bytes(progress.BytesDone), words.Bytes(progress.BytesSentMeasured), words.Bytes(progress.BytesSentPredicted))
		}
	}
	return nil
}

// verifyAll compares every object once and returns how long that took.
func (d *demo) verifyAll(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	stop := d.meter.watch(func() string {
		return fmt.Sprintf("reading everything once more: %s of %s objects", words.Number(d.reader.finalObjects.Load()), words.Number(int64(len(d.files.files))))
	})
	err := d.reader.everything(ctx, d.flags.jobs)
	stop()
	return time.Since(begin), err
}

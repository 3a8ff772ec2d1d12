// Package demo shows on a cluster of this machine how the operator moves what cools and what heats.
package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/policies"
	"github.com/restripe/restripe/tui/progress"
	"github.com/restripe/restripe/tui/tree"
)

// FewestFiles and FewestBytes are what a demonstration needs: small files share groups, and a part of the groups must be
// without what is popular.
const (
	FewestFiles = 20
	FewestBytes = 1 << 20
)

// Prefix begins the keys of the demonstration's objects: those of its policy.
const Prefix = "media/"

// Policy is the name of the policy and of its class.
const Policy = "media"

// policiesFile is where the policies of the demonstration are among the examples.
const policiesFile = "examples/demo/policies.yaml"

// Backend is the backend that they name.
const Backend = "demo"

// victim is the agent that is killed.
const victim = "n5"

// Control is what the demonstration does on the API server.
type Control interface {
	// Apply declares the objects of a text and returns a line on each.
	Apply(ctx context.Context, source policies.Source) ([]string, error)
	// Hold keeps the operator from moving what is under a policy, and returns a line on that.
	Hold(ctx context.Context, policy string) (string, error)
	// Transitions lists the Transitions, oldest first.
	Transitions(ctx context.Context) ([]v1alpha1.Transition, error)
	// Unmet says why a policy is not where it should be.
	Unmet(ctx context.Context, policy string) string
}

// Options say what a demonstration works on. All are required.
type Options struct {
	Files   *tree.Tree // with keys under Prefix
	Jobs    int        // objects stored or read at a time
	Cluster *launch.Cluster
	Gateway *client.Client
	Control Control
	Meter   *progress.Meter
	Began   time.Time
}

// Report is what a demonstration came to.
type Report struct {
	Steps []Step
	Lines []string // what was stored and compared, and what became of the agent that was killed
}

// demo is a demonstration that runs.
type demo struct {
	Options
	reader *reader

	costs  costs
	told   map[string]toldState // by transition, what was said of it
	killed string               // what became of the victim
}

// toldState is what was said of a transition.
type toldState int

const (
	toldCreated toldState = iota + 1
	toldEnded
)

// Run stores the files under a policy, lets them cool and heat, kills an agent meanwhile, and compares all that is read with
// the files. It tells what happens as it happens.
func Run(ctx context.Context, options Options) (*Report, error) {
	d := &demo{
		Options: options, reader: &reader{client: options.Gateway, files: options.Files}, told: map[string]toldState{},
	}
	return d.run(ctx)
}

// say tells what happens, and when since the start.
func (d *demo) say(format string, values ...any) {
	d.Meter.Say("%3.0f s  %s", time.Since(d.Began).Seconds(), fmt.Sprintf(format, values...))
}

// run is the whole demonstration, from the policies to the table.
func (d *demo) run(ctx context.Context) (*Report, error) {
	if err := d.declare(ctx); err != nil {
		return nil, err
	}
	first, second := popular(d.Files, 1, 4), popular(d.Files, 3, 4)
	stored := []int64{}
	for _, phase := range []func() error{
		func() error { return d.put(ctx) },
		func() error { return d.cool(ctx, &first) },
		func() error { return d.heat(ctx, &second) },
	} {
		if err := phase(); err != nil {
			return nil, err
		}
		now, err := d.stored(ctx)
		if err != nil {
			return nil, err
		}
		stored = append(stored, now)
	}
	// Reading everything makes everything hot: what the operator would make of that is left out.
	held, err := d.Control.Hold(ctx, Policy)
	if err != nil {
		return nil, err
	}
	d.say("%s", held)
	wasted, err := d.waste(ctx)
	if err != nil {
		return nil, err
	}
	verified, err := d.verifyAll(ctx)
	if err != nil {
		return nil, err
	}
	jobs, err := d.Gateway.Transitions(ctx)
	if err != nil {
		return nil, err
	}
	return &Report{Steps: steps(jobs, Policy), Lines: []string{
		fmt.Sprintf("Stored: %s after the puts, %s with all but %s cooled, %s with what was hot of another %s back.",
			words.Bytes(stored[0]), words.Bytes(stored[1]), words.Bytes(first.Bytes), words.Bytes(stored[2]), words.Bytes(second.Bytes)),
		wasted,
		fmt.Sprintf("While all this went on %s objects (%s) were read and compared with their files, and all %s once more at the end in %s: "+
			"every byte was right.", words.Number(d.reader.verified.Load()), words.Bytes(d.reader.bytes.Load()),
			words.Number(int64(len(d.Files.Files))), words.Span(verified)),
		d.costs.line(),
		d.killed,
	}}, nil
}

// declarePatience bounds the wait for the operator to take up the policies.
const declarePatience = time.Minute

// declare applies the policies and waits until the gateway has the class.
func (d *demo) declare(ctx context.Context) error {
	text, err := policies.Examples.ReadFile(policiesFile)
	if err != nil {
		return fmt.Errorf("reading the policies of the demonstration: %w", err)
	}
	d.say("restripe apply -f policies/%s", policiesFile)
	lines, err := d.Control.Apply(ctx, policies.Source{Name: "policies/" + policiesFile, Format: policies.YAML, Text: text})
	for _, line := range lines {
		d.say("  %s", line)
	}
	if err != nil {
		return err
	}
	return d.until(ctx, declarePatience, nil, func() string { return "the operator takes up the policies" }, func() (bool, error) {
		classes, err := d.Gateway.Classes(ctx)
		for _, class := range classes {
			if class.Name == Policy {
				return true, err
			}
		}
		return false, err
	})
}

// put stores the tree, as what the policy says new objects are stored as.
func (d *demo) put(ctx context.Context) error {
	begin := time.Now()
	var done tree.Done
	stop := d.Meter.Watch(func() string { return "put " + d.Files.Line(&done, time.Since(begin)) })
	err := d.Files.Put(ctx, d.Gateway, client.PutOptions{}, d.Jobs, &done)
	stop()
	if err != nil {
		return err
	}
	d.say("Stored %s files, %s, under %s in %s", words.Number(int64(len(d.Files.Files))),
		words.Bytes(d.Files.Bytes), Prefix, words.Span(time.Since(begin)))
	return nil
}

// coolPatience and heatPatience bound the wait for the operator to move what has cooled or heated: far more than it
// takes.
const (
	coolPatience = 10 * time.Minute
	heatPatience = 5 * time.Minute
)

// cool waits until most is on the last step of its ladder, while a part is read again and again and stays where it is.
func (d *demo) cool(ctx context.Context, popular *tree.Tree) error {
	d.say("%s of them, %s, are popular: %d readers read them again and again; nobody reads the others", words.Number(int64(len(popular.Files))), words.Bytes(popular.Bytes), popularReaders)
	began := time.Now()
	reading := d.reader.crowd(ctx, popular.Files)
	var class api.ClassHeat
	err := d.until(ctx, coolPatience, reading, func() string {
		return fmt.Sprintf("cooling: %s; %s objects verified", rungsText(&class), words.Number(d.reader.verified.Load()))
	}, func() (bool, error) {
		report, err := d.Gateway.Heat(ctx)
		if err != nil {
			return false, patient(err)
		}
		class = classOf(&report, Policy)
		d.costs.add(&class, time.Now())
		return report.Complete && report.Began.After(began) && cooled(&class), nil
	})
	return errors.Join(err, reading.stop())
}

// warm is the heat, in accesses a day, below which the policy of the demonstration leaves nothing that it has moved.
const warm = 4096

// cooled reports whether most groups are on the last step of the ladder, and so are those that are cold, but for a few.
func cooled(class *api.ClassHeat) bool {
	all, cold := int64(0), int64(0)
	for i, rung := range class.Rungs {
		all += rung.Groups
		for at, bucket := range rung.Buckets {
			if i < len(class.Rungs)-1 && api.HeatEdge(at+1) <= warm {
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
func (d *demo) heat(ctx context.Context, popular *tree.Tree) error {
	d.say("Now others are popular instead: %s files, %s", words.Number(int64(len(popular.Files))), words.Bytes(popular.Bytes))
	reading := d.reader.crowd(ctx, popular.Files)
	began := time.Now()
	var class api.ClassHeat
	hit := ""
	err := d.until(ctx, heatPatience, reading, func() string {
		return fmt.Sprintf("heating: %s; %s objects verified", rungsText(&class), words.Number(d.reader.verified.Load()))
	}, func() (bool, error) {
		report, err := d.Gateway.Heat(ctx)
		if err != nil {
			return false, patient(err)
		}
		class = classOf(&report, Policy)
		d.costs.add(&class, time.Now())
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
	transitions, err := d.Control.Transitions(ctx)
	if err != nil {
		return "", err
	}
	for i := range transitions {
		t := &transitions[i]
		if t.Status.To != to || t.Status.CompletionTime != nil || t.Status.Job == "" {
			continue
		}
		d.say("Killing agent %s (process %d) in the middle of %s", victim, d.Cluster.Pids()[victim], t.Name)
		d.killed = fmt.Sprintf("Agent %s was killed in the middle of %s and started again; the transition went on and completed.", victim, t.Name)
		return t.Name, d.Cluster.Kill(victim)
	}
	return "", nil
}

// compactPatience bounds the wait for a compaction and for the sweep after it.
const compactPatience = 5 * time.Minute

// waste writes every other small file over once more and has what that leaves dead given back. It returns a line on that.
func (d *demo) waste(ctx context.Context) (string, error) {
	var again tree.Tree
	for i, file := range d.Files.Files {
		if i%2 == 0 && file.Size < api.DefaultPackBelow {
			again.Files, again.Bytes = append(again.Files, file), again.Bytes+file.Size
		}
	}
	if len(again.Files) == 0 {
		return "No file is so small that it shares a group: nothing leaves dead space behind.", nil
	}
	before, err := d.stored(ctx)
	if err != nil {
		return "", err
	}
	var done tree.Done
	began := time.Now()
	stop := d.Meter.Watch(func() string { return "put once more " + again.Line(&done, time.Since(began)) })
	err = again.Put(ctx, d.Gateway, client.PutOptions{}, d.Jobs, &done)
	stop()
	if err != nil {
		return "", err
	}
	dead, err := d.stored(ctx)
	if err != nil {
		return "", err
	}
	d.say("Every other small file was written over, %s of %s: %s are stored, and were %s", words.Number(int64(len(again.Files))),
		words.Bytes(again.Bytes), words.Bytes(dead), words.Bytes(before))
	d.say("restripe compact start --everything")
	pass, err := d.Gateway.StartCompaction(ctx, api.CompactionRequest{Everything: true})
	if err != nil {
		return "", err
	}
	after := dead
	err = d.until(ctx, compactPatience, nil, func() string {
		return fmt.Sprintf("compacting: %s of %s groups emptied; %s are stored", words.Number(pass.GroupsDone), words.Number(pass.GroupsTotal), words.Bytes(after))
	}, func() (bool, error) {
		if pass, err = d.Gateway.Compaction(ctx); err != nil {
			return false, patient(err)
		}
		if after, err = d.stored(ctx); err != nil {
			return false, patient(err)
		}
		return pass.Finished != nil && (after < dead || pass.BytesFreed <= 0), nil // what was emptied is freed by the next sweep
	})
	return fmt.Sprintf("Every other small file was written over: %s were stored before, %s then, with what had died, and %s when it was compacted, "+
		"which moved %s.", words.Bytes(before), words.Bytes(dead), words.Bytes(after), words.Bytes(pass.BytesDone)), err
}

// lookEvery is how often the demonstration looks at the transitions.
const lookEvery = 200 * time.Millisecond

// errPatience ends a wait for something that should have happened long ago.
var errPatience = errors.New("it takes too long")

// until looks at the transitions and tells of them until done, or until the reading finds something wrong.
func (d *demo) until(ctx context.Context, patience time.Duration, reading *reading, line func() string, done func() (bool, error)) error {
	defer d.Meter.Clear()
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
		d.Meter.Show(time.Now(), line)
		select {
		case now := <-ticker.C:
			if now.After(deadline) {
				return fmt.Errorf("%w: after %s: %s; %s", errPatience, words.Span(patience), line(), d.Control.Unmet(ctx, Policy))
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tell says what transitions were made, and what became of them.
func (d *demo) tell(ctx context.Context) error {
	list, err := d.Control.Transitions(ctx)
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
	stop := d.Meter.Watch(func() string {
		return fmt.Sprintf("reading everything once more: %s of %s objects", words.Number(d.reader.finalObjects.Load()), words.Number(int64(len(d.Files.Files))))
	})
	err := d.reader.everything(ctx, d.Jobs)
	stop()
	return time.Since(begin), err
}

package screen

import (
	"context"
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// polled is what is known of a source that a page asks again and again.
type polled struct {
	asking  bool
	asked   time.Time
	failure string // of the last time
}

// isDue reports whether it is time to ask again.
func (p *polled) isDue(s *session, message tea.Msg) bool {
	_, is := message.(tick)
	return is && s.now().Sub(p.asked) >= aboutInterval
}

// poll asks, unless that is under way, for what takes over the answer.
func (p *polled) poll(s *session, call func(ctx context.Context) (take func(), err error)) tea.Cmd {
	if p.asking {
		return nil
	}
	p.asking, p.asked = true, s.now()
	return ask(s, call, func(take func(), err error) tea.Cmd {
		if p.asking = false; err != nil {
			p.failure = failureText(err, s.options.Address)
			return nil
		}
		take()
		return nil
	})
}

// liveBackend shows a backend and, as long as it is looked at, the compaction of its small objects.
type liveBackend struct {
	*textPage
	polled
	backend    *consolev1.Backend
	compaction *consolev1.Compaction // nil: not known yet, or its gateways do not compact
	known      bool                  // whether they do
}

func openBackend(s *session, one *consolev1.Backend) tea.Cmd {
	p := &liveBackend{backend: one}
	own := []keyGroup{{"The compaction", []key.Binding{keys.Compact, keys.Pause}}, {"The nodes", []key.Binding{keys.Balance, keys.Add}}}
	p.textPage = &textPage{session: s, name: one.Name, chosen: p.chosen, own: own}
	p.content, p.fetch = p.write, p.ask
	return s.open(p)
}

// chosen is the compaction, which can be steered, once it is known.
func (p *liveBackend) chosen() any {
	if p.compaction != nil {
		return p.compaction
	}
	return p.backend
}

func (p *liveBackend) ask() tea.Cmd {
	return p.poll(p.session, func(ctx context.Context) (func(), error) {
		report, err := p.session.options.Client.GetCompactions(ctx, &consolev1.GetCompactionsRequest{Backend: p.backend.Name})
		return func() { p.take(report) }, err
	})
}

func (p *liveBackend) take(report *consolev1.CompactionReport) {
	p.compaction, p.known, p.failure = nil, true, ""
	for _, one := range report.Compactions {
		p.compaction = one
	}
}

func (p *liveBackend) Update(message tea.Msg) tea.Cmd {
	if p.isDue(p.session, message) {
		return p.ask()
	}
	return p.textPage.Update(message)
}

func (p *liveBackend) write(s *script) {
	one := p.backend
	s.Head("Backend", one.Name)
	s.Field("type", one.Type)
	s.Field("gateways", strings.Join(one.Gateways, ", "))
	s.Field("used", backendUsed(&p.session.look, one))
	s.Field("cluster", one.Cluster)
	writeConditions(s, p.session, one.Conditions)
	s.Head("Dead space of small objects")
	switch {
	case p.failure != "":
		s.Text(p.failure)
	case p.compaction != nil:
		p.writeCompaction(s)
	case p.known:
		s.Text("Its gateways do not tell of a compaction.")
	default:
		s.Text("Asking for it.")
	}
}

func (p *liveBackend) writeCompaction(s *script) {
	one, l, now := p.compaction, &p.session.look, p.session.now()
	s.Field("compaction", one.State)
	switch {
	case one.Pass == 0:
		s.Text("Nothing was compacted yet.")
	case one.Finished == nil && one.GroupsTotal == 0:
		s.Text("It looks at how much is dead in each group.")
	default:
		s.Raw(fmt.Sprintf("%s %s of %s groups emptied", l.bar(one.BytesDone, one.BytesTotal, 30),
			words.Number(one.GroupsDone), words.Number(one.GroupsTotal)))
		s.Field("moved", words.Moved(one.ObjectsMoved, one.ObjectsSpliced))
		s.Field("freed", words.Bytes(one.BytesFreed))
	}
	if one.EtaSeconds != nil {
		s.Field("left", "about "+words.About(words.Seconds(*one.EtaSeconds)))
	}
	if one.BytesPerSecond > 0 {
		s.Field("limit", words.Rate(one.BytesPerSecond))
	}
	if one.Failed > 0 {
		s.Field("failed", words.Count(one.Failed, "group")+" of which something could not be moved")
	}
	s.Field("error", one.Error)
	if one.Looked == nil {
		return
	}
	s.Field("looked", ageText(one.Looked, now)+" ago")
	for _, class := range one.Classes {
		s.Field(class.Class, deadText(class))
	}
	if len(one.Classes) == 0 {
		s.Text("No class has groups of small objects.")
	}
}

// deadText is how much is dead of a class, and how much may be.
func deadText(class *consolev1.DeadSpace) string {
	text := fmt.Sprintf("%s of %s dead, %s of what lives; ", words.Bytes(class.DeadBytes), words.Bytes(class.Bytes),
		words.Share(class.DeadBytes, class.Bytes-class.DeadBytes))
	switch {
	case class.DeadAtMostPercent == 0:
		return text + "there is no such class any more"
	case class.DeadAtMostPercent >= neverCompact:
		return text + "any may be"
	}
	return text + fmt.Sprintf("at most %d %% may be", class.DeadAtMostPercent)
}

// neverCompact is the percentage from which on a class is not compacted.
const neverCompact = 1000

// steerCompaction changes the compaction of a backend, says how that ended, and shows it as it is then.
func (m *Model) steerCompaction(call func(ctx context.Context) (*consolev1.CompactionChange, error)) tea.Cmd {
	page, shown := m.top().(*liveBackend)
	return ask(m.session, call, func(change *consolev1.CompactionChange, err error) tea.Cmd {
		if err != nil {
			m.fail(err)
			return nil
		}
		if m.say(plain(change.Said)); shown {
			page.compaction = change.Compaction
		}
		return nil
	})
}

func (m *Model) compactChosen(chosen any) (tea.Cmd, bool) {
	backend := ""
	switch one := chosen.(type) {
	case *consolev1.Backend:
		backend = one.Name
	case *consolev1.Compaction:
		backend = one.Backend
	default:
		return nil, false
	}
	return m.steerCompaction(func(ctx context.Context) (*consolev1.CompactionChange, error) {
		return m.options.Client.StartCompaction(ctx, &consolev1.StartCompactionRequest{Backend: backend})
	}), true
}

// pauseCompaction pauses a compaction, or goes on with one that is paused.
func (m *Model) pauseCompaction(one *consolev1.Compaction) tea.Cmd {
	return m.steerCompaction(func(ctx context.Context) (*consolev1.CompactionChange, error) {
		if one.State == "paused" {
			return m.options.Client.ResumeCompaction(ctx, &consolev1.ResumeCompactionRequest{Backend: one.Backend})
		}
		return m.options.Client.PauseCompaction(ctx, &consolev1.PauseCompactionRequest{Backend: one.Backend})
	})
}

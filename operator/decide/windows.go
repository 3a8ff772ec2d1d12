package decide

import (
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// Windows are the times at which transitions of a policy may start and run. The truth table is in docs/windows.md.
type Windows []window

type window struct {
	schedule
	deny     bool
	finish   bool // overrun: what runs may end
	duration time.Duration
	text     string // for messages
}

// longestWindow is the longest duration of a window.
const longestWindow = 7 * 24 * time.Hour

// ParseWindows reads windows. A schedule has five fields of cron or is one of @hourly, @daily, @midnight, @weekly,
// @monthly, @yearly and @annually.
func ParseWindows(declared []v1alpha1.Window) (Windows, *Problem) {
	var windows Windows
	for i, declaration := range declared {
		wrong := func(field, value string, why any) *Problem {
			return problem(ReasonInvalidWindow, "windows[%d].%s %q: %v", i, field, value, why)
		}
		name := declaration.TimeZone
		if name == "" {
			name = "UTC"
		}
		zone, err := time.LoadLocation(name)
		if err != nil || name == "Local" {
			return nil, wrong("timeZone", name, "no such time zone; use a name such as Europe/Berlin or UTC")
		}
		text := declaration.Schedule
		if strings.HasPrefix(text, "@every") {
			return nil, wrong("schedule", text, "it does not say when to begin; use five fields such as '0 */6 * * *'")
		}
		if strings.Contains(text, "TZ=") {
			return nil, wrong("schedule", text, "give the zone in timeZone")
		}
		parsed, err := cron.ParseStandard(text)
		if err != nil {
			return nil, wrong("schedule", text, err)
		}
		if parsed.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
			return nil, wrong("schedule", text, "no such day ever comes")
		}
		if length := declaration.Duration.Duration; length <= 0 || length > longestWindow {
			return nil, wrong("duration", durationText(length), "a window lasts more than 0s and at most 168h")
		}
		windows = append(windows, window{
			schedule: schedule{cron: parsed, zone: zone}, deny: declaration.Kind == v1alpha1.WindowDeny,
			finish: declaration.Overrun == v1alpha1.OverrunFinish, duration: declaration.Duration.Duration,
			text: text + " for " + durationText(declaration.Duration.Duration) + " " + name,
		})
	}
	return windows, nil
}

// Permission is what windows say at a moment.
type Permission struct {
	Start bool     // transitions may start
	Run   bool     // those that have started may go on
	Why   *Problem // why none may start; nil if they may
	// Next is when transitions may next start, or the zero time if they may now or not within a year.
	Next time.Time
	// Until is when the permission changes next, or the zero time if not within a week.
	Until time.Time
}

// At returns what the windows say at a moment. It depends on the moment alone: whichever way the clock came there, the
// answer is the same.
func (w Windows) At(t time.Time) Permission {
	p := w.at(t)
	if len(w) == 0 {
		return p
	}
	p.Until = w.search(t, t.Add(untilHorizon), func(at time.Time) bool { q := w.at(at); return q.Start != p.Start || q.Run != p.Run })
	if !p.Start {
		p.Next = w.search(t, t.Add(nextHorizon), func(at time.Time) bool { return w.at(at).Start })
	}
	return p
}

func (w Windows) at(t time.Time) Permission {
	var (
		denied, allowed, allows = false, false, false
		run                     = true
		why                     *Problem
		closed                  time.Time // when the last allow window closed
		closedFinish            bool
	)
	for _, window := range w {
		_, open := window.last(t, window.duration)
		switch {
		case window.deny && open:
			denied, run = true, run && window.finish
			why = problem(ReasonWindowDenies, "the deny window %s is open", window.text)
		case window.deny:
		case open:
			allows, allowed = true, true
		default:
			allows = true
			opened, ever := window.last(t, lookBack)
			if !ever {
				continue
			}
			if end := opened.Add(window.duration); end.After(closed) {
				closed, closedFinish = end, window.finish
			} else if end.Equal(closed) {
				closedFinish = closedFinish && window.finish
			}
		}
	}
	if allows && !allowed {
		run = run && closedFinish
		if why == nil {
			why = problem(ReasonWindowClosed, "no allow window is open")
		}
	}
	start := !denied && (allowed || !allows)
	return Permission{Start: start, Run: start || run, Why: why}
}

// lookBack is how far back the last opening of a closed window is looked for; Feb 29 comes every eight years at worst.
const lookBack = 9 * 366 * 24 * time.Hour

// How far ahead permissions are looked for, and how many openings and closings are looked at on the way.
const (
	nextHorizon  = 366 * 24 * time.Hour
	untilHorizon = 8 * 24 * time.Hour
	mostSteps    = 3000
	longestRun   = 12_000 // openings one after the other without a moment between: a week of minutes, a year of hours
)

// search returns the first moment after t and not after end at which the windows satisfy a predicate that changes only
// when a window opens or closes, or the zero time.
func (w Windows) search(t, end time.Time, holds func(time.Time) bool) time.Time {
	changes := make([]time.Time, len(w)) // the next one of each window
	for at, step := t, 0; step < mostSteps; step++ {
		next := end.Add(1)
		for i, window := range w {
			if !changes[i].After(at) {
				changes[i] = window.change(at, end)
			}
			if changes[i].Before(next) {
				next = changes[i]
			}
		}
		if at = next; at.After(end) {
			return time.Time{}
		}
		if holds(at) {
			return at
		}
	}
	return time.Time{}
}

// change returns when the window next opens or closes; a moment after end if not before.
func (w window) change(t, end time.Time) time.Time {
	never := end.Add(1)
	opened, open := w.last(t, w.duration)
	if !open {
		if at, found := w.next(t, end); found {
			return at
		}
		return never
	}
	for range longestRun {
		closes := opened.Add(w.duration)
		again, found := w.next(opened, closes)
		switch {
		case closes.After(end):
			return never
		case !found:
			return closes
		}
		opened = again
	}
	return never
}

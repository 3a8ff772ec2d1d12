package decide

import (
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

func declared(kind v1alpha1.WindowKind, schedule string, duration time.Duration, zone string, overrun v1alpha1.Overrun) v1alpha1.Window {
	return v1alpha1.Window{Kind: kind, Schedule: schedule, Duration: metav1.Duration{Duration: duration}, TimeZone: zone, Overrun: overrun}
}

func mustWindows(t testing.TB, list ...v1alpha1.Window) Windows {
	t.Helper()
	windows, wrong := ParseWindows(list)
	if wrong != nil {
		t.Fatal(wrong.Message)
	}
	return windows
}

func moment(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// The table people read is the table that is tested.
func TestTruthTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/windows.md")
	if err != nil {
		t.Fatal(err)
	}
	noon := moment(t, "2026-03-03T12:00:00Z")
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 5 || cells[4] != "yes" && cells[4] != "no" {
			continue
		}
		rows++
		var list []v1alpha1.Window
		for i, kind := range []v1alpha1.WindowKind{v1alpha1.WindowAllow, v1alpha1.WindowDeny} {
			schedule := map[string]string{"open": "0 11 * * *", "closed": "0 8 * * *"}[cells[i]]
			if schedule != "" {
				list = append(list, declared(kind, schedule, 2*time.Hour, "", v1alpha1.Overrun(cells[2])))
			}
		}
		p := mustWindows(t, list...).At(noon)
		if p.Start != (cells[3] == "yes") || p.Run != (cells[4] == "yes") || (p.Why == nil) != p.Start {
			t.Errorf("%v: start %v, run %v, why %v", cells, p.Start, p.Run, p.Why)
		}
	}
	if rows != 17 {
		t.Errorf("the table of docs/windows.md has %d rows, want none|open|closed x none|open|closed x Finish|Pause, less one", rows)
	}
}

func TestOverrunIsThatOfTheWindowThatClosedLast(t *testing.T) {
	at := moment(t, "2026-03-03T12:00:00Z")
	early := declared(v1alpha1.WindowAllow, "0 6 * * *", time.Hour, "", v1alpha1.OverrunFinish)
	late := declared(v1alpha1.WindowAllow, "0 9 * * *", time.Hour, "", v1alpha1.OverrunPause)
	if mustWindows(t, early, late).At(at).Run {
		t.Error("a window with Pause closed last, and what runs goes on")
	}
	early.Overrun, late.Overrun = late.Overrun, early.Overrun
	if !mustWindows(t, early, late).At(at).Run {
		t.Error("a window with Finish closed last, and what runs is paused")
	}
	tie := declared(v1alpha1.WindowAllow, "0 8 * * *", 2*time.Hour, "", v1alpha1.OverrunPause)
	if mustWindows(t, early, late, tie).At(at).Run || mustWindows(t, tie, late, early).At(at).Run {
		t.Error("windows with Finish and Pause closed together, and what runs goes on")
	}
	finish := declared(v1alpha1.WindowDeny, "0 11 * * *", 2*time.Hour, "", v1alpha1.OverrunFinish)
	pause := declared(v1alpha1.WindowDeny, "30 11 * * *", 2*time.Hour, "", v1alpha1.OverrunPause)
	if mustWindows(t, finish, pause).At(at).Run || mustWindows(t, pause, finish).At(at).Run {
		t.Error("one of two open deny windows says Pause, and what runs goes on")
	}
}

func TestWindowsAreRefused(t *testing.T) {
	for _, c := range []struct {
		window v1alpha1.Window
		wants  string
	}{
		{declared("", "0 22 * * *", time.Hour, "Mars/Olympus", ""), "no such time zone"},
		{declared("", "0 22 * * *", time.Hour, "Local", ""), "no such time zone"},
		{declared("", "0 22 * *", time.Hour, "", ""), "exactly 5 fields"},
		{declared("", "61 22 * * *", time.Hour, "", ""), "above maximum"},
		{declared("", "@every 1h", time.Hour, "", ""), "when to begin"},
		{declared("", "@reboot", time.Hour, "", ""), "unrecognized"},
		{declared("", "TZ=UTC 0 22 * * *", time.Hour, "", ""), "in timeZone"},
		{declared("", "0 0 30 2 *", time.Hour, "", ""), "no such day"},
		{declared("", "0 22 * * *", 0, "", ""), "more than 0s"},
		{declared("", "0 22 * * *", 169*time.Hour, "", ""), "at most 168h"},
	} {
		_, wrong := ParseWindows([]v1alpha1.Window{c.window})
		if wrong == nil || wrong.Reason != ReasonInvalidWindow || !strings.Contains(wrong.Message, c.wants) || !strings.HasPrefix(wrong.Message, "windows[0].") {
			t.Errorf("%+v: %v, want %q", c.window, wrong, c.wants)
		}
	}
}

func TestWindowsInTime(t *testing.T) {
	night := declared(v1alpha1.WindowAllow, "30 2 * * *", 4*time.Hour, "Europe/Berlin", v1alpha1.OverrunPause)
	allow := func(schedule string, duration time.Duration) v1alpha1.Window {
		return declared(v1alpha1.WindowAllow, schedule, duration, "", v1alpha1.OverrunPause)
	}
	deny := func(schedule string, duration time.Duration) v1alpha1.Window {
		return declared(v1alpha1.WindowDeny, schedule, duration, "", v1alpha1.OverrunPause)
	}
	for _, c := range []struct {
		intent  string
		windows []v1alpha1.Window
		at      string
		start   bool
		until   string
		next    string
	}{
		{"closed before it opens", []v1alpha1.Window{night}, "2026-01-10T01:29:59Z", false, "2026-01-10T01:30:00Z", "2026-01-10T01:30:00Z"},
		{"open from the opening on", []v1alpha1.Window{night}, "2026-01-10T01:30:00Z", true, "2026-01-10T05:30:00Z", ""},
		{"closed from the end on", []v1alpha1.Window{night}, "2026-01-10T05:30:00Z", false, "2026-01-11T01:30:00Z", "2026-01-11T01:30:00Z"},
		{"spring: 02:30 is skipped, it opens at the jump at 01:00Z", []v1alpha1.Window{night}, "2026-03-29T00:59:00Z", false, "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z"},
		{"spring: and lasts its four hours", []v1alpha1.Window{night}, "2026-03-29T01:00:00Z", true, "2026-03-29T05:00:00Z", ""},
		{"spring: the day after, summer time", []v1alpha1.Window{night}, "2026-03-30T00:29:00Z", false, "2026-03-30T00:30:00Z", "2026-03-30T00:30:00Z"},
		{"autumn: 02:30 comes twice, it opens with the first", []v1alpha1.Window{night}, "2026-10-25T00:29:00Z", false, "2026-10-25T00:30:00Z", "2026-10-25T00:30:00Z"},
		{"autumn: and closes after the second", []v1alpha1.Window{night}, "2026-10-25T00:30:00Z", true, "2026-10-25T05:30:00Z", ""},
		{"longer than its period: always open", []v1alpha1.Window{allow("@hourly", 2*time.Hour)}, "2026-01-10T12:34:00Z", true, "", ""},
		{"as long as its period: always open", []v1alpha1.Window{allow("@daily", 24*time.Hour)}, "2026-01-10T12:34:00Z", true, "", ""},
		{"every minute for a week: always open", []v1alpha1.Window{allow("* * * * *", 168*time.Hour)}, "2026-01-10T12:34:00Z", true, "", ""},
		{"denied without end", []v1alpha1.Window{deny("* * * * *", time.Hour)}, "2026-01-10T12:34:00Z", false, "", ""},
		{"a deny window in an allow window", []v1alpha1.Window{allow("0 8 * * *", 10*time.Hour), deny("0 12 * * *", time.Hour)}, "2026-01-10T12:34:00Z", false, "2026-01-10T13:00:00Z", "2026-01-10T13:00:00Z"},
		{"a deny window over the end of an allow window", []v1alpha1.Window{allow("0 8 * * *", 4*time.Hour), deny("30 11 * * *", time.Hour)}, "2026-01-10T11:45:00Z", false, "2026-01-11T08:00:00Z", "2026-01-11T08:00:00Z"},
		{"two allow windows that meet", []v1alpha1.Window{allow("0 8 * * *", time.Hour), allow("0 9 * * *", time.Hour)}, "2026-01-10T08:30:00Z", true, "2026-01-10T10:00:00Z", ""},
		{"a leap day", []v1alpha1.Window{allow("0 0 29 2 *", time.Hour)}, "2027-12-01T00:00:00Z", false, "", "2028-02-29T00:00:00Z"},
		{"a leap day too far ahead", []v1alpha1.Window{allow("0 0 29 2 *", time.Hour)}, "2026-12-01T00:00:00Z", false, "", ""},
	} {
		p := mustWindows(t, c.windows...).At(moment(t, c.at))
		format := func(at time.Time) string {
			if at.IsZero() {
				return ""
			}
			return at.UTC().Format(time.RFC3339)
		}
		if p.Start != c.start || format(p.Until) != c.until || format(p.Next) != c.next {
			t.Errorf("%s: start %v until %s next %s, want %v, %s, %s", c.intent, p.Start, format(p.Until), format(p.Next), c.start, c.until, c.next)
		}
	}
}

// A clock that jumps back finds the windows of the time it shows: no state is left from the future.
func TestWindowsHaveNoMemory(t *testing.T) {
	windows := mustWindows(t, declared(v1alpha1.WindowAllow, "0 22 * * *", 8*time.Hour, "America/New_York", v1alpha1.OverrunFinish))
	before := moment(t, "2026-11-01T05:30:00Z")
	first := windows.At(before)
	windows.At(before.Add(40 * time.Hour))
	if again := windows.At(before); again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
}

// minuteByMinute is the definition: walk real time and look at the clock on the wall.
func minuteByMinute(s schedule, from time.Time, minutes int) []time.Time {
	matches := func(wall time.Time) bool { return s.cron.Next(wall.Add(-time.Second)).Equal(wall) }
	var openings []time.Time
	for i := 1; i <= minutes; i++ {
		at := from.Add(time.Duration(i) * time.Minute)
		wall, before := wallClock(at, s.zone), wallClock(at.Add(-time.Minute), s.zone)
		opens := matches(wall)
		for skipped := before.Add(time.Minute); skipped.Before(wall) && !opens; skipped = skipped.Add(time.Minute) {
			opens = matches(skipped)
		}
		if opens {
			openings = append(openings, at)
		}
	}
	return openings
}

func TestScheduleAgainstTheClockOnTheWall(t *testing.T) {
	jumps := []struct{ zone, at string }{
		{"Europe/Berlin", "2026-03-29T01:00:00Z"}, {"Europe/Berlin", "2026-10-25T01:00:00Z"},
		{"America/New_York", "2026-03-08T07:00:00Z"}, {"America/New_York", "2026-11-01T06:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"}, {"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
		{"America/Havana", "2026-03-08T05:00:00Z"}, {"Pacific/Apia", "2011-12-30T10:00:00Z"}, {"UTC", "2026-06-01T00:00:00Z"},
	}
	schedules := []string{"* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "0 2 * * 0", "59 23 31 12 *", "@daily", "0 3 8 * 1"}
	rapid.Check(t, func(t *rapid.T) {
		jump := rapid.SampledFrom(jumps).Draw(t, "jump")
		at, _ := time.Parse(time.RFC3339, jump.at)
		from := at.Add(-time.Duration(rapid.IntRange(0, 40*60).Draw(t, "before")) * time.Minute)
		windows, wrong := ParseWindows([]v1alpha1.Window{declared("", rapid.SampledFrom(schedules).Draw(t, "schedule"), time.Hour, jump.zone, "")})
		if wrong != nil {
			t.Fatal(wrong)
		}
		minutes := rapid.IntRange(1, 80*60).Draw(t, "minutes")
		end := from.Add(time.Duration(minutes) * time.Minute)
		position := from
		for _, want := range minuteByMinute(windows[0].schedule, from, minutes) {
			got, found := windows[0].next(position, end)
			if !found || !got.Equal(want) {
				t.Fatalf("after %s the next opening is %s, want %s", position, got, want)
			}
			position = got
		}
		if got, found := windows[0].next(position, end); found {
			t.Fatalf("opens at %s, which the clock on the wall does not show", got)
		}
		if last, found := windows[0].last(end, end.Sub(from)); found != !position.Equal(from) || found && !last.Equal(position) {
			t.Fatalf("the last opening is %s, want %s", last, position)
		}
	})
}

func FuzzParseWindows(f *testing.F) {
	f.Add("0 22 * * 1-5", "Europe/Berlin", int64(8*time.Hour))
	f.Add("@daily", "", int64(time.Minute))
	f.Add("0 0 30 2 *", "UTC", int64(1))
	now := time.Date(2026, 3, 29, 0, 59, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, schedule, zone string, duration int64) {
		windows, wrong := ParseWindows([]v1alpha1.Window{declared(v1alpha1.WindowAllow, schedule, time.Duration(duration), zone, v1alpha1.OverrunPause)})
		if wrong != nil {
			return
		}
		p := windows.At(now)
		if p.Start && p.Why != nil || !p.Start && p.Why == nil || p.Start && !p.Run {
			t.Fatalf("%+v", p)
		}
		if !p.Next.IsZero() && !windows.at(p.Next).Start {
			t.Fatalf("the next start %s is not allowed", p.Next)
		}
	})
}

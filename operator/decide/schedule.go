package decide

import (
	"time"

	"github.com/robfig/cron/v3"
)

// schedule is when a window opens, by the clock on the wall of a zone. A time that the wall clock skips opens the window
// when the clock jumps, and a time that comes twice opens it twice.
type schedule struct {
	cron cron.Schedule // looked up on wall-clock times written as UTC
	zone *time.Location
}

// next returns the earliest opening after t and not after end. It walks over the periods in which the wall clock runs
// evenly.
func (s schedule) next(t, end time.Time) (time.Time, bool) {
	wall := wallClock(t, s.zone)
	for !t.After(end) {
		opening := s.cron.Next(wall)
		if opening.IsZero() {
			return time.Time{}, false
		}
		_, jump := t.In(s.zone).ZoneBounds()
		at := t.Add(opening.Sub(wallClock(t, s.zone)))
		if jump.IsZero() || at.Before(jump) {
			return at.UTC(), !at.After(end)
		}
		wall = wallClock(jump, s.zone)
		if opening.Before(wall) { // the clock skips it
			return jump.UTC(), !jump.After(end)
		}
		t, wall = jump, wall.Add(-time.Second) // so that an opening at the jump itself is found
	}
	return time.Time{}, false
}

// last returns the latest opening after t-within and not after t.
func (s schedule) last(t time.Time, within time.Duration) (latest time.Time, found bool) {
	// Most schedules that open often opened lately: short looks first.
	for back := min(within, time.Hour); ; back = min(within, back*8) {
		for at, more := s.next(t.Add(-back), t); more; at, more = s.next(at, t) {
			latest, found = at, true
		}
		if found || back == within {
			return latest, found
		}
	}
}

// wallClock is what a clock on a wall of the zone shows, written as UTC.
func wallClock(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

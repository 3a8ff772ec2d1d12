package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// freshness is whether a source answers: when it last did, and since when and why it does not.
type freshness struct {
	answered time.Time // zero: never yet
	since    time.Time // of the first failure after that; zero: it answers
	err      error
}

// success and failure return what follows an answer, and none.
func (f freshness) success(now time.Time) freshness { return freshness{answered: now} }

func (f freshness) failure(now time.Time, err error) freshness {
	f.err = err
	if f.since.IsZero() {
		f.since = now
	}
	return f
}

// worse returns the one of two freshnesses of one source that is to be told of.
func (f freshness) worse(other freshness) freshness {
	switch {
	case f.err == nil && other.err != nil:
		return other
	case f.err == nil && !other.answered.IsZero() && (f.answered.IsZero() || other.answered.Before(f.answered)):
		return other
	case f.err != nil && other.err != nil && other.since.Before(f.since):
		return other
	}
	return f
}

// view is a freshness as the faces see it.
func (f freshness) view(name string) *consolev1.Source {
	v := &consolev1.Source{Name: name, Answered: stamp(f.answered)}
	if f.err != nil {
		v.StaleSince, v.Error = stamp(f.since), oneLine(f.err)
	}
	return v
}

// stamp is a time as the contract has it; the zero time is absent.
func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// timeOf is a time of the contract; absent is the zero time.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// oneLine is an error without line breaks, as joined errors have them.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// sameSources compares what sources say but for when they last answered, which changes all the time.
func sameSources(a, b []*consolev1.Source) bool {
	return slices.EqualFunc(a, b, func(a, b *consolev1.Source) bool {
		return a.Name == b.Name && a.Error == b.Error && (a.Answered == nil) == (b.Answered == nil)
	})
}

func sortSources(sources []*consolev1.Source) []*consolev1.Source {
	slices.SortFunc(sources, func(a, b *consolev1.Source) int { return cmp.Compare(a.Name, b.Name) })
	return sources
}

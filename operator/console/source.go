package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/gateways"
)

// sourceView is the freshness of a source as the faces see it.
func sourceView(name string, fresh gateways.Freshness) *consolev1.Source {
	v := &consolev1.Source{Name: name, Answered: contract.Time(fresh.Answered)}
	if fresh.Err != nil {
		v.StaleSince, v.Error = contract.Time(fresh.Since), oneLine(fresh.Err)
	}
	return v
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

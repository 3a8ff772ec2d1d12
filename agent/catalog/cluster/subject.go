package cluster

import (
	"context"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Subject is what changes seldom, and of whose changes the catalog tells. Releases before this one tell of classes alone.
type Subject string

// The subjects. Those that are told are names under which there never is a record.
const (
	SubjectClasses Subject = schema.KeyClasses
	SubjectMembers Subject = "told/members"   // nodes, the contents of their stores, and the patience with them
	SubjectJobs    Subject = "told/jobs"      // those that were declared, steered or given other limits; not their progress
	SubjectRepair  Subject = schema.KeyRepair // what is declared of it
	SubjectScrub   Subject = "told/scrub"     // its record; not its progress
	SubjectViews   Subject = "told/views"     // which nodes a gateway does not hear
	SubjectHeat    Subject = "told/heat"      // what gateways counted
	SubjectBalance Subject = "told/balance"   // its record; not its progress
)

// Watch returns a channel that holds a token when it is worth reading what is kept of a subject; see kv.engine.Watch.
func (k *Keeper) Watch(ctx context.Context, subject Subject) <-chan struct{} {
	return k.engine.Watch(ctx, string(subject))
}

// tell is the write that tells of a change of a subject which has no record.
func tell(subject Subject) kv.Write {
	return kv.Write{Key: string(subject), Kind: kv.Remove, Notify: true}
}

package console

import (
	"encoding/json"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/agent/audit"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// outside records what is declared past this console: by kubectl, the command line, and whoever else writes to the API
// server. It tells what it sees while the console runs, after it has happened, and knows a writer by its field manager alone.
type outside struct {
	*auditing

	mutex sync.Mutex                  // of what follows
	known map[types.UID]declaredState // as last seen
	own   map[types.UID]bool          // deleted by a call of this console
}

// declaredState is a state of an object.
type declaredState struct {
	generation int64
	spec       json.RawMessage
	fields     []metav1.ManagedFieldsEntry
}

// Where changes come from that were made past the console, and what they are called.
const (
	fromServer    = "API server"
	actionChanged = "DeclaredElsewhere"
	actionDeleted = "DeletedElsewhere"
	writerUnknown = "unknown"
)

// begin takes note of an object that was there when the console began to look.
func (o *outside) begin(object client.Object) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.known[object.GetUID()] = stateOf(object)
}

// deletes says that a call of this console deletes an object.
func (o *outside) deletes(object client.Object) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.own[object.GetUID()] = true
}

// saw records a change of what an object declares that neither this console nor the operator made.
func (o *outside) saw(kind string, object client.Object) {
	o.mutex.Lock()
	before, is := o.known[object.GetUID()], stateOf(object)
	deleted, own := object.GetDeletionTimestamp() != nil, o.own[object.GetUID()]
	if is.generation > before.generation {
		o.known[object.GetUID()] = is
	}
	o.mutex.Unlock()
	writer := writerOf(before.fields, object)
	switch {
	case is.generation <= before.generation, deleted && own, !deleted && ours(writer):
		return
	}
	entry := audit.Entry{
		User: writer, From: fromServer, Verb: "declare", Action: actionChanged, Object: kind + "/" + object.GetName(), Before: before.spec,
	}
	outcome := audit.Outcome{Result: audit.ResultDone, After: is.spec}
	if deleted {
		entry.User, entry.Action, outcome.After = writerUnknown, actionDeleted, nil
	}
	sequence, err := o.audit.Begin(entry)
	if err == nil {
		err = o.audit.End(sequence, outcome)
	}
	if err != nil {
		o.metrics.auditFailures.Inc()
		o.log.Error("a change made past the console was not recorded", "object", entry.Object, "user", entry.User, "cause", err)
	}
}

// gone forgets an object.
func (o *outside) gone(object client.Object) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.known, object.GetUID())
	delete(o.own, object.GetUID())
}

func stateOf(object client.Object) declaredState {
	text, err := json.Marshal(object)
	if err != nil {
		panic("encoding " + object.GetName() + ": " + err.Error()) // invariant: it came as JSON
	}
	var parts struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		panic("reading " + object.GetName() + ": " + err.Error()) // invariant: it was just written
	}
	return declaredState{object.GetGeneration(), parts.Spec, object.GetManagedFields()}
}

// writerOf returns the field manager that wrote what an object declares, given who had set what before: who has more fields than
// before, else who wrote at another time, else who wrote last. Of several, one that is neither this console nor the operator.
func writerOf(before []metav1.ManagedFieldsEntry, object client.Object) string {
	writer, best := writerUnknown, [3]int64{-1}
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" || entry.Time == nil || entry.FieldsV1 == nil {
			continue
		}
		gained, changed := int64(1), int64(1)
		for _, was := range before {
			same := was.Manager == entry.Manager && was.Operation == entry.Operation && was.Subresource == ""
			if same && was.Time != nil && was.FieldsV1 != nil {
				gained, changed = one(len(entry.FieldsV1.GetRawBytes()) > len(was.FieldsV1.GetRawBytes())), one(!entry.Time.Equal(was.Time))
			}
		}
		rank := [3]int64{gained, changed, entry.Time.Unix()}
		if order := slices.Compare(rank[:], best[:]); order > 0 || order == 0 && ours(writer) {
			writer, best = entry.Manager, rank
		}
	}
	return writer
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// ours reports whether a field manager is this console or the operator.
func ours(manager string) bool { return manager == fieldOwner || manager == v1alpha1.FieldOwner }

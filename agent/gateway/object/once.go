package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
)

// errRepeated says that a request was carried out before.
var errRepeated = errors.New("the request was carried out before")

func nameOf(request api.Request) catalog.RequestName {
	return catalog.RequestNamed(request.At(), request.ID)
}

// answerOf is what a change leaves for those who ask for it again: nothing where the request has no name.
func answerOf(request api.Request, key string, object *api.Object) []catalog.Answer {
	if request.IsZero() {
		return nil
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic("an object cannot be written as JSON: " + err.Error()) // invariant: its fields can
	}
	return []catalog.Answer{{Request: nameOf(request), Key: key, Text: text}}
}

// once does what a request asks for, unless it was done before: then its answer is that of before. Who asks twice at once is told the
// same both times, as the commit of one of them is refused.
func once(ctx context.Context, o *Objects, key string, request api.Request, do func() (api.Object, error)) (api.Object, error) {
	if request.IsZero() {
		return do()
	}
	before, done, err := answered(ctx, o, key, request)
	if done || err != nil {
		return before, err
	}
	object, err := do()
	if !isRepeated(err) {
		return object, err
	}
	before, done, failed := answered(ctx, o, key, request)
	if done || failed != nil {
		return before, failed
	}
	return object, err
}

// isRepeated reports whether a commit was refused because its request was carried out before.
func isRepeated(err error) bool {
	var stale *catalog.StaleError
	return errors.Is(err, errRepeated) || errors.As(err, &stale) && stale.Has(catalog.ViolationRepeated)
}

// answered returns what came of a request before, which was of the same object.
func answered(ctx context.Context, o *Objects, key string, request api.Request) (object api.Object, done bool, err error) {
	text, done, err := o.catalog.Answered(ctx, nameOf(request), key)
	if err == nil && done && len(text) == 0 {
		err = catalog.ErrOtherRequest // a delete
	}
	switch {
	case errors.Is(err, catalog.ErrOtherRequest):
		return object, false, refuseName(request)
	case err != nil || !done:
		return object, false, err
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return object, false, fmt.Errorf("reading what request %s was answered: %w", request, err)
	}
	return object, true, o.witnessDelete(ctx) // whoever was told so before may have seen it lost with the catalog
}

func refuseName(request api.Request) error {
	return api.Refuse(api.ErrBadRequest, "Idempotency-Key %s was used for another change; each has one of its own", request)
}

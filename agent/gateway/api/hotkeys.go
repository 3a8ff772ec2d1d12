package api

import (
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/stripe"
)

// MaxHotReads is the most reads within a half-life that may be asked of a hot key.
const MaxHotReads = 1_000_000_000

// Parse reads where hot keys are to lie in a class of that ladder and default.
func (spec *HotKeysSpec) Parse(ladder stripe.Ladder, standard stripe.Scheme) (*HotKeys, error) {
	if spec == nil {
		return nil, nil
	}
	scheme, err := stripe.ParseScheme(spec.Scheme)
	if err != nil {
		return nil, fmt.Errorf("scheme: %w", err)
	}
	keys := &HotKeys{Scheme: scheme, Reads: spec.Reads}
	return keys, keys.Check(ladder, standard)
}

// Check reports what is wrong with them in a class of that ladder and default.
func (h *HotKeys) Check(ladder stripe.Ladder, standard stripe.Scheme) error {
	at, usual := slices.Index(ladder, h.Scheme), slices.Index(ladder, standard)
	switch {
	case at < 0:
		return fmt.Errorf("scheme %s is not on the ladder %s; choose a scheme of the ladder", h.Scheme, ladder)
	case at > usual:
		return fmt.Errorf("scheme %s is colder than the default %s, under which other keys are put; choose that one, or one before it on "+
			"the ladder %s", h.Scheme, standard, ladder)
	case h.Reads < 1 || h.Reads > MaxHotReads:
		return fmt.Errorf("reads is %d; give how many reads within a half-life make a key a hot one, from 1 to %d", h.Reads, MaxHotReads)
	}
	return nil
}

// Spec is the specification that says so; nil of nil.
func (h *HotKeys) Spec() *HotKeysSpec {
	if h == nil {
		return nil
	}
	return &HotKeysSpec{Scheme: h.Scheme.String(), Reads: h.Reads}
}

// IsOnLadder reports whether a scheme, as text, is on the ladder.
func (c *Class) IsOnLadder(scheme string) bool {
	parsed, err := stripe.ParseScheme(scheme)
	return err == nil && c.Ladder.Contains(parsed)
}

// IsColder reports whether a scheme, as text, comes after the scheme of hot keys on the ladder of their class, or is not on it.
func (c *Class) IsColder(scheme string) bool {
	parsed, err := stripe.ParseScheme(scheme)
	if err != nil || c.HotKeys == nil {
		return false
	}
	at := slices.Index(c.Ladder, parsed)
	return at < 0 || at > slices.Index(c.Ladder, c.HotKeys.Scheme)
}

package screen

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// pinnable is what can be pinned: a policy by its name, with its ladder, and the pin it has.
type pinnable struct {
	policy string
	ladder []string
	pin    *consolev1.Pin
}

// pinnableOf is what is pinned where a policy, or a class that has one, is chosen.
func pinnableOf(chosen any) (what pinnable, is bool) {
	switch one := chosen.(type) {
	case *consolev1.Policy:
		return pinnable{one.Name, one.Ladder, one.Pin}, true
	case *consolev1.ClassHeat:
		what = pinnable{policy: one.Policy, pin: one.Pin}
		for _, rung := range one.Rungs {
			what.ladder = append(what.ladder, rung.Scheme)
		}
		return what, true
	}
	return pinnable{}, false
}

// pinText is a pin in words: until when, by whom and why.
func pinText(pin *consolev1.Pin, now time.Time) string {
	if pin.Ended {
		return fmt.Sprintf("the pin to %s ended %s and has no effect any more; u takes it out", schemeText(pin.Scheme), clockText(pin.Until, now))
	}
	text := "to " + schemeText(pin.Scheme) + " until " + clockText(pin.Until, now)
	if pin.By != "" {
		text += " by " + pin.By
	}
	if pin.Reason != "" {
		text += ": " + pin.Reason
	}
	return text
}

// pinnedText is a scheme in few characters, in brackets where the class is pinned to it.
func pinnedText(scheme string, pin *consolev1.Pin) string {
	if pin != nil && !pin.Ended && pin.Scheme == scheme {
		return "[" + schemeText(scheme) + "]"
	}
	return schemeText(scheme)
}

// pinChosen asks for a scheme, a time and a reason, and says what would move before anything is pinned.
func (m *Model) pinChosen(chosen any) (tea.Cmd, bool) {
	what, is := pinnableOf(chosen)
	if !is {
		return nil, false
	}
	if what.policy == "" {
		m.warn(nameOf(chosen) + " has no policy that could be pinned")
		return nil, true
	}
	question := fmt.Sprintf("Pin policy %s to a scheme of its ladder (%s), for how long, and why? Such as: %s 7d the audit. Or until a time: %s 2026-12-24.",
		plain(what.policy), plain(strings.Join(what.ladder, ", ")), plain(first(what.ladder)), plain(first(what.ladder)))
	m.prompt = newPrompt(question, "pin to: ", "", func(text string) tea.Cmd {
		pin, err := parsePin(text, what.ladder, m.now())
		if err != nil {
			m.warn(err.Error())
			return nil
		}
		return m.beforePinning(what.policy, &consolev1.WhatIfPin{Scheme: pin.Scheme, Until: pin.Until},
			fmt.Sprintf("Pin policy %s to %s until %s?", plain(what.policy), schemeText(pin.Scheme), clockText(pin.Until, m.now())), "pins", func(ctx context.Context) (string, error) {
				pinned, err := m.options.Client.PinPolicy(ctx, &consolev1.PinPolicyRequest{Name: what.policy, Scheme: pin.Scheme, Until: pin.Until, Reason: pin.Reason})
				return pinned.GetSaid(), err
			})
	})
	return nil, true
}

// unpinChosen takes a pin out, and says what would move before.
func (m *Model) unpinChosen(chosen any) (tea.Cmd, bool) {
	what, is := pinnableOf(chosen)
	if !is {
		return nil, false
	}
	if what.pin == nil {
		m.warn(nameOf(chosen) + " is not pinned; n pins it")
		return nil, true
	}
	return m.beforePinning(what.policy, &consolev1.WhatIfPin{}, fmt.Sprintf("Unpin policy %s, so that its temperature decides again?", plain(what.policy)), "unpins",
		func(ctx context.Context) (string, error) {
			unpinned, err := m.options.Client.UnpinPolicy(ctx, &consolev1.UnpinPolicyRequest{Name: what.policy})
			return unpinned.GetSaid(), err
		}), true
}

// beforePinning asks the console what a pin would move and then the person whether that is meant.
func (m *Model) beforePinning(policy string, pin *consolev1.WhatIfPin, question, does string, call func(ctx context.Context) (string, error)) tea.Cmd {
	return ask(m.session, func(ctx context.Context) (*consolev1.WhatIfResponse, error) {
		return m.options.Client.WhatIf(ctx, &consolev1.WhatIfRequest{Policy: policy, Pin: pin})
	}, func(what *consolev1.WhatIfResponse, err error) tea.Cmd {
		if err != nil {
			m.fail(err)
			return nil
		}
		m.prompt = newQuestion(fmt.Sprintf("%s %s y %s it, any other key leaves it.", question, consequence(what.GetThen()), does), func() tea.Cmd { return m.change(call) })
		return nil
	})
}

// consequence is what a plan comes to, in sentences.
func consequence(plan *consolev1.PolicyPlan) string {
	text := plain(cmp.Or(plan.GetLine(), "Nothing would move."))
	if plan.GetUnknown() != "" {
		text = "What would move is not known yet: " + strings.TrimSuffix(plain(plan.Unknown), ".") + "."
	}
	if ending := plan.GetEnding(); len(ending) > 0 {
		text += " It ends " + plain(strings.Join(ending, ", ")) + "."
	}
	for _, move := range plan.GetMoves() {
		if move.Fate != "automatic" {
			text += fmt.Sprintf(" %s to %s is %s.", schemeText(move.From), schemeText(move.To), strings.TrimSuffix(plain(fateText(move)), "."))
		}
	}
	return text
}

// lastsPattern is a length of time in hours, days or weeks.
var lastsPattern = regexp.MustCompile(`^([0-9]{1,5})([hdw])$`)

// parsePin reads a scheme, how long or until when, and a reason.
func parsePin(text string, ladder []string, now time.Time) (*consolev1.Pin, error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return nil, fmt.Errorf("pin %q: want a scheme and how long, such as %s 7d", plain(text), plain(first(ladder)))
	}
	at := slices.IndexFunc(ladder, func(scheme string) bool {
		return words[0] == scheme || words[0] == strings.ReplaceAll(schemeText(scheme), " ", "")
	})
	if at < 0 {
		return nil, fmt.Errorf("pin to %q: the ladder has %s", plain(words[0]), plain(strings.Join(ladder, ", ")))
	}
	until, err := parseUntil(words[1], now)
	if err != nil {
		return nil, err
	}
	return &consolev1.Pin{Scheme: ladder[at], Until: timestamppb.New(until), Reason: strings.Join(words[2:], " ")}, nil
}

// parseUntil reads 12h, 7d, 2w, a day or a time; a day begins where the person is.
func parseUntil(text string, now time.Time) (time.Time, error) {
	if parts := lastsPattern.FindStringSubmatch(text); parts != nil {
		count, err := strconv.Atoi(parts[1])
		if err == nil && count > 0 {
			unit := map[string]time.Duration{"h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[parts[2]]
			return now.Add(time.Duration(count) * unit), nil
		}
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04"} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	return time.Time{}, fmt.Errorf("until %q: want how long, such as 12h, 7d or 2w, or a time such as %s", plain(text), now.Add(7*24*time.Hour).Format("2006-01-02T15:04"))
}

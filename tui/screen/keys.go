package screen

import (
	"charm.land/bubbles/v2/key"
)

// keymap is every key of the screen. Help and hints are made from it.
type keymap struct {
	Kind, Filter, Back, Help, Quit            key.Binding
	Up, Down, PageUp, PageDown, Top, Bottom   key.Binding
	Open, Describe, YAML                      key.Binding
	Edit, Apply, Force, Plan, Pause           key.Binding
	Approve, Cancel, Compact                  key.Binding
	Throttle, Rollback, Drain, Move, Reverse  key.Binding
	Pin, Unpin                                key.Binding
	Balance, Begin, Stop, Add                 key.Binding
	Sort, Before, After, First, Last, Refresh key.Binding
}

// keys is the one keymap.
var keys = keymap{
	Kind:   bind(":", "kinds", ":"),
	Filter: bind("/", "filter", "/"),
	Back:   bind("esc", "back", "esc"),
	Help:   bind("?", "help", "?"),
	Quit:   bind("q", "quit", "q", "ctrl+c"),

	Up:       bind("↑ k", "up", "up", "k"),
	Down:     bind("↓ j", "down", "down", "j"),
	PageUp:   bind("pgup", "a page up", "pgup", "ctrl+b"),
	PageDown: bind("pgdn", "a page down", "pgdown", "ctrl+f", "space"),
	Top:      bind("g", "to the top", "g", "home"),
	Bottom:   bind("G", "to the end", "G", "end"),

	Open:     bind("enter", "open", "enter"),
	Describe: bind("d", "describe", "d"),
	YAML:     bind("y", "YAML", "y"),

	Edit:     bind("e", "edit, plan, apply", "e"),
	Apply:    bind("A", "apply", "A"),
	Force:    bind("F", "take over", "F"),
	Plan:     bind("p", "plan", "p"),
	Pause:    bind("P", "pause or resume", "P"),
	Approve:  bind("a", "approve", "a"),
	Cancel:   bind("c", "cancel", "c"),
	Throttle: bind("t", "throttle", "t"),
	Rollback: bind("R", "roll back", "R"),
	Drain:    bind("D", "drain or undrain", "D"),
	Compact:  bind("C", "compact now", "C"),
	Pin:      bind("n", "pin to a scheme for a time", "n"),
	Unpin:    bind("u", "unpin", "u"),
	Balance:  bind("b", "balance of the nodes", "b"),
	Begin:    bind("B", "begin, or give another rate", "B"),
	Stop:     bind("x", "stop for good", "x"),
	Add:      bind("N", "add a node", "N"),
	Move:     bind("m", "move to another scheme", "m"),

	Sort:    bind("s", "sort by the next column", "s"),
	Reverse: bind("S", "sort the other way round", "S"),
	Before:  bind("← h", "a step back", "left", "h"),
	After:   bind("→ l", "a step on", "right", "l"),
	First:   bind("[", "to the first step", "["),
	Last:    bind("]", "to the last step", "]"),
	Refresh: bind("r", "ask again", "r"),
}

func bind(shown, does string, pressed ...string) key.Binding {
	return key.NewBinding(key.WithKeys(pressed...), key.WithHelp(shown, does))
}

// keyGroup is a headed part of the help.
type keyGroup struct {
	title string
	keys  []key.Binding
}

// moving are the keys of every list and text.
func (k *keymap) moving() []key.Binding {
	return []key.Binding{k.Up, k.Down, k.PageUp, k.PageDown, k.Top, k.Bottom}
}

// everywhere are the keys that work on every page.
func (k *keymap) everywhere() []key.Binding {
	return []key.Binding{k.Kind, k.Filter, k.Back, k.Help, k.Quit}
}

package schema

import (
	"errors"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
)

// IsDissolved reports whether the columns of the group lie in other groups.
func (g *Group) IsDissolved() bool { return len(g.Lies) > 0 }

// Span is over how many columns the extents run that name the group: those that were not brought.
func (g *Group) Span() int { return g.Columns - len(g.Brought) }

func (g *Group) checkDissolved() error {
	if len(g.Lies) != g.Columns || len(g.Slots)+len(g.Home) > 0 || g.Open {
		return fmt.Errorf("group %s was dissolved, and has %d places of %d columns, %d slots and %d nodes; open: %t",
			g.ID, len(g.Lies), g.Columns, len(g.Slots), len(g.Home), g.Open)
	}
	return nil
}

// LiesIn returns the groups that columns of the group lie in, each once for every column.
func (g *Group) LiesIn() (ids []block.GroupID) {
	for _, in := range g.Lies {
		if in != (Column{}) {
			ids = append(ids, in.Group)
		}
	}
	return ids
}

// ErrNotThere says that the record of a group is not at hand that a column lies in; use errors.Is.
var ErrNotThere = errors.New("the group that a column lies in is not there")

// mostDissolved is into how many groups a column may have come one after the other.
const mostDissolved = 64

// Where returns the column in which a column lies, and its group, by the records of one instant. ErrNotThere if one of them lacks.
func Where(groups map[block.GroupID]*Group, of Column) (Column, *Group, error) {
	for range mostDissolved {
		group := groups[of.Group]
		switch {
		case group == nil:
			return of, nil, fmt.Errorf("column %d of group %s: %w", of.Column, of.Group, ErrNotThere)
		case !group.IsDissolved():
			return of, group, nil
		case of.Column < 0 || of.Column >= len(group.Lies) || group.Lies[of.Column] == Column{}:
			return of, nil, fmt.Errorf("column %d of group %s was empty when it was dissolved", of.Column, of.Group)
		}
		of = group.Lies[of.Column]
	}
	return of, nil, fmt.Errorf("column %d of group %s lies in itself", of.Column, of.Group)
}

// Gathered returns the group with the slots of its columns, wherever these lie by the records of one instant: itself where it was not
// dissolved. It is for looking at, and no record.
func (g *Group) Gathered(groups map[block.GroupID]*Group) (*Group, error) {
	if !g.IsDissolved() {
		return g, nil
	}
	gathered := *g
	gathered.Lies, gathered.Slots = nil, make([]Slot, g.Columns)
	for column, lies := range g.Lies {
		if lies == (Column{}) {
			continue
		}
		at, in, err := Where(groups, lies)
		if err != nil {
			return nil, err
		}
		if at.Column >= len(in.Slots) {
			return nil, fmt.Errorf("group %s has no column %d, in which column %d of group %s lies", at.Group, at.Column, column, g.ID)
		}
		gathered.Slots[column] = in.Slots[at.Column]
	}
	return &gathered, nil
}

// CheckRegion checks that some groups are in one state what they are in another, but that some of them were dissolved into further
// columns of the others. isGone reports whether a group that lay in a column is not there any more, so that what lies there is nobody's.
func CheckRegion(narrow, wide map[block.GroupID]*Group, isGone func(block.GroupID) bool) error {
	for id, before := range narrow {
		after := wide[id]
		if before.IsDissolved() || before.Class != after.Class || before.CellBytes != after.CellBytes || before.Packed != after.Packed {
			return fmt.Errorf("group %s is of another kind, or lies elsewhere before too", id)
		}
		check := checkWidened
		if after.IsDissolved() {
			check = checkTaken
		}
		if err := check(before, after, narrow, wide, isGone); err != nil {
			return err
		}
	}
	return nil
}

// checkTaken checks that the columns of a group that is dissolved lie in new columns of others.
func checkTaken(before, after *Group, narrow, wide map[block.GroupID]*Group, _ func(block.GroupID) bool) error {
	if err := after.checkDissolved(); err != nil || before.Columns != after.Columns || !slices.Equal(before.Brought, after.Brought) {
		return fmt.Errorf("group %s is dissolved into other columns than it has: %w", before.ID, err)
	}
	for column, lies := range after.Lies {
		slot := before.Slots[column]
		if lies == (Column{}) {
			if len(slot) > 0 {
				return fmt.Errorf("column %d of group %s would lie nowhere", column, before.ID)
			}
			continue
		}
		was, in := narrow[lies.Group], wide[lies.Group]
		if was == nil || in == nil || in.IsDissolved() || lies.Column < max(was.Columns, in.Span()) || lies.Column >= in.Columns ||
			in.Brought[lies.Column-in.Span()] != (Column{Group: before.ID, Column: column}) || in.CellBytes != before.CellBytes {
			return fmt.Errorf("column %d of group %s cannot lie in column %d of group %s", column, before.ID, lies.Column, lies.Group)
		}
		if have := in.Slots[lies.Column]; len(slot) == 0 || have.End() != slot.End() {
			return fmt.Errorf("column %d of group %s has %d units, and %d where it lies", column, before.ID, slot.End(), have.End())
		}
	}
	return nil
}

// checkWidened checks that a group has further columns of groups that are dissolved, and else is what it is.
func checkWidened(before, after *Group, _, wide map[block.GroupID]*Group, isGone func(block.GroupID) bool) error {
	more := after.Columns - before.Columns
	if more <= 0 || len(after.Brought) != len(before.Brought)+more || !slices.Equal(after.Brought[:len(before.Brought)], before.Brought) {
		return fmt.Errorf("group %s has %d columns before and %d after, of which %d and %d were brought",
			before.ID, before.Columns, after.Columns, len(before.Brought), len(after.Brought))
	}
	if len(before.Slots) < before.Columns || len(after.Slots) < after.Columns ||
		!slices.EqualFunc(before.Slots[:before.Columns], after.Slots[:before.Columns], slices.Equal) {
		return fmt.Errorf("the columns of group %s are not the same before and after", before.ID)
	}
	for i, origin := range after.Brought[len(before.Brought):] {
		column := before.Columns + i
		from := wide[origin.Group]
		switch {
		case origin == Column{}:
			if len(after.Slots[column]) > 0 {
				return fmt.Errorf("column %d of group %s comes from nowhere", column, before.ID)
			}
		case from == nil && isGone(origin.Group):
		case from == nil || origin.Column < 0 || origin.Column >= len(from.Lies) ||
			from.Lies[origin.Column] != Column{Group: before.ID, Column: column}:
			return fmt.Errorf("column %d of group %s is not where column %d of group %s lies", column, before.ID, origin.Column, origin.Group)
		}
	}
	return nil
}

package screen

import (
	"context"
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// groupPicture is the stripe picture in characters: one group as its array of cells, lettered and tinted by stripe, small
// letters for the stripes before a plan and capitals for those after it, parity nodes at the right, and the steps between.
type groupPicture struct {
	session  *session
	request  *consolev1.GetPictureRequest
	picture  *consolev1.Picture // nil: not there yet
	failure  string
	step     int // how many steps are done; len(Steps): all
	rowsMost int
}

func newGroupPicture(s *session, ladder, from, to string) *groupPicture {
	return &groupPicture{session: s, request: &consolev1.GetPictureRequest{Ladder: ladder, From: from, To: to}, rowsMost: 16}
}

func (g *groupPicture) fetch() tea.Cmd {
	return ask(g.session, func(ctx context.Context) (*consolev1.Picture, error) {
		return g.session.options.Client.GetPicture(ctx, g.request)
	}, func(picture *consolev1.Picture, err error) tea.Cmd {
		if err != nil {
			g.failure = failureText(err, g.session.options.Address)
			return nil
		}
		g.picture, g.failure = picture, ""
		return nil
	})
}

// Press takes the keys of the steps.
func (g *groupPicture) Press(pressed tea.KeyPressMsg) bool {
	if g.picture == nil {
		return false
	}
	switch {
	case key.Matches(pressed, keys.Before):
		g.step = max(0, g.step-1)
	case key.Matches(pressed, keys.After):
		g.step = min(len(g.picture.Steps), g.step+1)
	case key.Matches(pressed, keys.First):
		g.step = 0
	case key.Matches(pressed, keys.Last):
		g.step = len(g.picture.Steps)
	default:
		return false
	}
	return true
}

// way is "rep 3 → 4+2".
func (g *groupPicture) way() string {
	return schemeText(g.request.From) + " " + g.session.look.glyphs.arrow + " " + schemeText(g.request.To)
}

// Short is the picture as it begins, its first rows, and what crosses the network, in at most so many lines.
func (g *groupPicture) Short(width, lines int) []string {
	l := &g.session.look
	if g.picture == nil {
		return []string{l.paint(l.dim, shortenEnd("GROUP "+g.way()+" "+g.failure, width, l.glyphs.more))}
	}
	cost := g.picture.Cost
	head := fmt.Sprintf("GROUP %s  %s, %s and %d sent between nodes", g.way(), words.Count(int64(cost.GetBlocksRead()), "block")+" read",
		fmt.Sprintf("%d written", cost.GetBlocksWritten()), cost.GetBlocksSent())
	drawing := g.array(width, lines-1, 0)
	return append([]string{l.paint(l.title, shortenEnd(head, width, l.glyphs.more))}, drawing...)
}

// Write draws the picture, the step and the running total.
func (g *groupPicture) Write(s *script) {
	l := &g.session.look
	s.Head("One group,", g.way())
	switch {
	case g.failure != "":
		s.Text("The picture cannot be drawn: " + g.failure)
		return
	case g.picture == nil:
		s.Text("Asking for the plan.")
		return
	}
	s.Raw(g.array(s.width, g.rowsMost+1, g.step)...)
	s.Raw("")
	steps := g.picture.Steps
	sent := int32(0)
	if g.step > 0 {
		step := steps[g.step-1]
		sent = step.BlocksSentTotal
		s.Text(g.named(step))
	} else {
		s.Text("Before anything is done. Small letters are stripes of " + schemeText(g.picture.From) + ", capitals those of " + schemeText(g.picture.To) + ".")
	}
	s.Raw(l.paint(l.dim, fmt.Sprintf("step %d of %d, %s sent so far; %s and %s go through the steps", g.step, len(steps), words.Count(int64(sent), "block"),
		keyName(g.session, keys.Before), keyName(g.session, keys.After))))
}

// named is the sentence of a step, with an arrow only where blocks cross the network.
func (g *groupPicture) named(step *consolev1.PictureStep) string {
	text := step.Text
	if step.Kind == consolev1.StepKind_STEP_KIND_SEND {
		text = fmt.Sprintf("%s ==%d==%s %s   %s", g.position(step.Position), step.Blocks, g.session.look.glyphs.arrow, g.position(step.ToPosition), text)
	}
	return text
}

// position is how the array heads a position.
func (g *groupPicture) position(at int32) string {
	columns := g.picture.Columns
	switch {
	case at < 0:
		return "the catalog"
	case at < columns:
		return fmt.Sprintf("%d", at+1)
	case int(at-columns) < len(g.picture.Parities):
		return fmt.Sprintf("p%d", at-columns+1)
	}
	return "proxy"
}

// committed reports whether the steps done have named the new blocks.
func (g *groupPicture) committed(step int) bool {
	for _, one := range g.picture.Steps[:step] {
		if one.Kind == consolev1.StepKind_STEP_KIND_COMMIT {
			return true
		}
	}
	return false
}

// array draws the cells after some steps, a headline and at most lines-1 rows of them.
func (g *groupPicture) array(width, lines, step int) []string {
	p, l := g.picture, &g.session.look
	parities := g.parities(step)
	wide := 0
	for _, one := range parities {
		wide += textWidth(one) + 1
	}
	cell := 3
	for cell > 1 && 3+cell*int(p.Columns)+2+wide > width {
		cell--
	}
	shown := max(1, min(int(p.Columns), (width-5-min(wide, width/2))/cell))
	active := g.active(step)
	committed := g.committed(step)

	head := "   "
	for column := range shown {
		text := fmt.Sprint(column + 1)
		if len(text) >= cell {
			text = text[len(text)-1:]
		}
		head += g.framed(fit(text, max(1, cell-1), false), active[int32(column)] && cell == 3, cell)
	}
	if shown < int(p.Columns) {
		head += l.glyphs.more
	}
	head += l.glyphs.column
	for i, one := range parities {
		head += " " + fit("p"+fmt.Sprint(i+1), textWidth(one), false)
	}
	rows := []string{l.paint(l.dim, shortenEnd(head, width, ""))}
	for row := 0; row < int(p.Rows) && len(rows) < lines; row++ {
		if len(rows) == lines-1 && row < int(p.Rows)-1 {
			rows = append(rows, l.paint(l.dim, fmt.Sprintf("   and %d more rows", int(p.Rows)-row)))
			break
		}
		rows = append(rows, g.row(row, shown, cell, step, committed, parities, width))
	}
	return rows
}

// row is one row of cells; the first one has what the parity nodes hold.
func (g *groupPicture) row(row, shown, cell, step int, committed bool, parities []string, width int) string {
	p, l := g.picture, &g.session.look
	reads := g.reads(step)
	line := "   "
	for column := range shown {
		one := p.Cells[row*int(p.Columns)+column]
		stripe, text := one.OldStripe, oldLetter(one.OldStripe)
		if committed {
			stripe, text = one.NewStripe, newLetter(one.NewStripe)
		}
		read := reads[[2]int32{int32(row), int32(column)}]
		if read && cell < 3 && cell > 1 {
			line += l.paint(l.chosen, text) + " "
			continue
		}
		line += l.stripe(stripe, g.framed(fit(text, max(1, cell-1), false), read && cell == 3, cell))
	}
	if shown < int(p.Columns) {
		line += l.glyphs.more
	}
	line += l.glyphs.column
	if row == 0 {
		line += " " + strings.Join(parities, " ")
	}
	return fit(line, min(width, textWidth(line)), false)
}

// framed puts a text of a cell between brackets where it is used.
func (g *groupPicture) framed(text string, used bool, cell int) string {
	switch {
	case cell == 1:
		return text[:1]
	case used:
		return "[" + strings.TrimSpace(text) + "]"
	case cell == 3:
		return " " + text
	}
	return text + " "
}

// reads are the cells that the last step read.
func (g *groupPicture) reads(step int) map[[2]int32]bool {
	cells := map[[2]int32]bool{}
	if step > 0 {
		for _, one := range g.picture.Steps[step-1].Cells {
			cells[[2]int32{one.Row, one.Column}] = true
		}
	}
	return cells
}

// active are the columns between which the last step sent.
func (g *groupPicture) active(step int) map[int32]bool {
	columns := map[int32]bool{}
	if step > 0 {
		if one := g.picture.Steps[step-1]; one.Kind == consolev1.StepKind_STEP_KIND_SEND {
			columns[one.Position], columns[one.ToPosition] = true, true
		}
	}
	return columns
}

// parities are what the parity nodes hold after some steps: the stripes of which they have a parity block.
func (g *groupPicture) parities(step int) []string {
	committed := g.committed(step)
	var texts []string
	for _, node := range g.picture.Parities {
		var text string
		if committed {
			text = letters(node.NewStripes, newLetter)
		} else {
			text = letters(node.OldStripes, oldLetter)
			var staged []int32
			for _, one := range g.picture.Steps[:step] {
				if one.Kind == consolev1.StepKind_STEP_KIND_ADD && one.Position == node.Position && one.NewStripe >= 0 {
					staged = append(staged, one.NewStripe)
				}
			}
			if len(staged) > 0 {
				text += "+" + letters(staged, newLetter)
			}
		}
		if text == "" {
			text = "-"
		}
		texts = append(texts, fit(text, max(2, textWidth(text)), false))
	}
	return texts
}

// letters names stripes: all of few, the first and the last of many.
func letters(stripes []int32, letter func(int32) string) string {
	const few = 6
	if len(stripes) > few {
		return letter(stripes[0]) + "-" + letter(stripes[len(stripes)-1])
	}
	text := ""
	for _, one := range stripes {
		text += letter(one)
	}
	return text
}

// oldLetter names a stripe before the plan; after z the letters begin anew.
func oldLetter(stripe int32) string { return string('a' + stripe%26) }

// newLetter names a stripe after the plan.
func newLetter(stripe int32) string { return string('A' + stripe%26) }

func keyName(s *session, one key.Binding) string {
	first, _, _ := strings.Cut(one.Help().Key, " ")
	if s.options.ASCII {
		return one.Keys()[0]
	}
	return first
}

package screen

import (
	"math"
	"strings"

	"charm.land/lipgloss/v2"
)

// look is how the screen draws: with colours or without, with the characters of Unicode or those of ASCII.
type look struct {
	colour bool
	glyphs glyphs

	title, dim, good, warn, bad, chosen lipgloss.Style

	heat    []lipgloss.Style // cold to hot
	stripes []lipgloss.Style // next to each other easily told apart
}

// glyphs are the characters that pictures are made of.
type glyphs struct {
	full, empty    string
	spark, shade   []string
	cursor         string
	good, bad      string
	running, pause string
	waiting, ended string
	warning        string
	arrow, more    string
	line, column   string
}

var unicodeGlyphs = glyphs{
	full: "█", empty: "░", spark: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, shade: []string{" ", "░", "▒", "▓", "█"},
	cursor: "▸", good: "✓", bad: "✗", running: "▶", pause: "‖", waiting: "◌", ended: "✓", warning: "!", arrow: "→", more: "…", line: "─", column: "│",
}

var asciiGlyphs = glyphs{
	full: "#", empty: "-", spark: []string{".", ".", "-", "-", "=", "=", "#", "#"}, shade: []string{" ", ".", "-", "=", "#"},
	cursor: ">", good: "+", bad: "x", running: ">", pause: "=", waiting: "~", ended: "+", warning: "!", arrow: "->", more: "..", line: "-", column: "|",
}

func newLook(noColor, ascii bool) look {
	l := look{colour: !noColor, glyphs: unicodeGlyphs}
	if ascii {
		l.glyphs = asciiGlyphs
	}
	style := func(colour string) lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Color(colour)) }
	l.title = style("12").Bold(true)
	l.dim = style("8")
	l.good, l.warn, l.bad = style("10"), style("11"), style("9").Bold(true)
	l.chosen = lipgloss.NewStyle().Reverse(true)
	// One scale from cold blue to hot orange whose lightness only grows, so that it is readable in grey.
	for _, colour := range []string{"#26456e", "#3a6a98", "#6f93a8", "#b09a7c", "#e0963f", "#ffb347"} {
		l.heat = append(l.heat, style(colour))
	}
	for _, colour := range []string{"#6aa5d8", "#e0963f", "#7cc07c", "#c78bd0", "#d8c24a", "#5fc4c0", "#e27d7d", "#a8a8a8"} {
		l.stripes = append(l.stripes, style(colour))
	}
	return l
}

// paint draws a text in a style, or as it is where there are no colours.
func (l *look) paint(style lipgloss.Style, text string) string {
	if !l.colour || text == "" {
		return text
	}
	return style.Render(text)
}

// stripe paints a text in the tint of a stripe.
func (l *look) stripe(number int32, text string) string {
	return l.paint(l.stripes[int(number)%len(l.stripes)], text)
}

// bar shows how much of a whole is done, zero included.
func (l *look) bar(done, total int64, width int) string {
	filled := 0
	switch {
	case total <= 0 || done <= 0:
	case done >= total:
		filled = width
	default: // the nearest, but neither empty nor full before it is
		filled = max(1, min(width-1, int(math.Round(float64(width)*float64(done)/float64(total)))))
	}
	return strings.Repeat(l.glyphs.full, filled) + strings.Repeat(l.glyphs.empty, width-filled)
}

// spark draws values as columns of one line from zero to the largest; only the last width of them.
func (l *look) spark(values []float64, width int) string {
	if len(values) > width {
		values = values[len(values)-width:]
	}
	top := 0.0
	for _, value := range values {
		top = max(top, value)
	}
	var b strings.Builder
	for _, value := range values {
		step := 0
		if top > 0 && value > 0 {
			step = min(len(l.glyphs.spark)-1, int(value/top*float64(len(l.glyphs.spark))))
		}
		b.WriteString(l.glyphs.spark[step])
	}
	return b.String()
}

// warmth paints a text by how hot it is, share from 0, cold, to 1, hot.
func (l *look) warmth(share float64, text string) string {
	return l.paint(l.heat[min(len(l.heat)-1, max(0, int(share*float64(len(l.heat)))))], text)
}

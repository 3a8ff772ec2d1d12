package main

import (
	"fmt"
	"html"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// A character of a picture, in pixels, and what a terminal without settings of its own looks like.
const (
	cellWidth, cellHeight = 8.4, 18.0
	margin                = 12.0
	background            = "#15191f"
	foreground            = "#d5dae2"
)

// picture draws a screen as SVG: text that can be read, searched and scaled.
func picture(content string, width, height int) string {
	buffer := uv.NewScreenBuffer(width, height)
	uv.NewStyledString(content).Draw(buffer, buffer.Bounds())
	var b strings.Builder
	w, h := float64(width)*cellWidth+2*margin, float64(height)*cellHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.1f %.1f" width="%.0f" height="%.0f" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", background)
	for y := range height {
		drawLine(&b, buffer, width, y)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// drawLine draws runs of characters of one style; each has its place, so that another font moves nothing.
func drawLine(b *strings.Builder, buffer uv.ScreenBuffer, width, y int) {
	for x := 0; x < width; {
		first := cellAt(buffer, x, y)
		text, end := "", x
		for end < width {
			one := cellAt(buffer, end, y)
			if !one.Style.Equal(&first.Style) {
				break
			}
			content := one.Content
			if content == "" {
				content = " "
			}
			text += content
			end += max(1, one.Width)
		}
		drawRun(b, first.Style, text, x, end-x, y)
		x = end
	}
}

func cellAt(buffer uv.ScreenBuffer, x, y int) uv.Cell {
	if cell := buffer.CellAt(x, y); cell != nil {
		return *cell
	}
	return uv.Cell{Content: " ", Width: 1}
}

func drawRun(b *strings.Builder, style uv.Style, text string, x, width, y int) {
	front, back := colour(style.Fg, foreground), colour(style.Bg, "")
	if style.Attrs&uv.AttrReverse != 0 {
		front, back = colour(style.Bg, background), colour(style.Fg, foreground)
	}
	left, top := margin+float64(x)*cellWidth, margin+float64(y)*cellHeight
	if back != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", left, top, float64(width)*cellWidth, cellHeight, back)
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	weight := ""
	if style.Attrs&uv.AttrBold != 0 {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s"%s textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve">%s</text>`+"\n",
		left, top+cellHeight*0.75, front, weight, float64(width)*cellWidth, html.EscapeString(text))
}

// palette are the sixteen colours of a terminal, as they are read well on the background.
var palette = [16]string{
	"#15191f", "#e5534b", "#57ab5a", "#c69026", "#539bf5", "#b083f0", "#39c5cf", "#adbac7",
	"#7c8794", "#ff6b6b", "#7ee787", "#e3b341", "#79b8ff", "#d2a8ff", "#56d4dd", "#ffffff",
}

// colour is a colour as SVG names it.
func colour(c color.Color, otherwise string) string {
	if c == nil {
		return otherwise
	}
	if basic, is := c.(ansi.BasicColor); is && int(basic) < len(palette) {
		return palette[basic]
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

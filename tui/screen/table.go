package screen

import (
	"cmp"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"github.com/charmbracelet/x/ansi"

	tea "charm.land/bubbletea/v2"

	"github.com/restripe/restripe/operator/words"
)

// column is one column of a table.
type column[T any] struct {
	title  string
	width  int // 0: what the others leave
	from   int // shown on screens of at least this width
	right  bool
	name   bool // too long, it is cut in the middle: names differ at their ends
	text   func(T) string
	number func(T) float64 // to sort by; nil: by the text
	paint  func(value T, text string) string
}

// entry is a row, and the text that a filter looks at once it was needed.
type entry[T any] struct {
	key    string
	value  T
	listed bool // in the order
	search string
}

// table is a list of rows of which only those on the screen are drawn. The chosen row stays chosen wherever it goes.
type table[T any] struct {
	look    *look
	columns []column[T]
	key     func(T) string
	order   func(a, b T) int // unless the person sorts by a column

	entries map[string]*entry[T]
	sorted  []*entry[T]
	shown   []*entry[T] // those of sorted that match
	filter  string
	sortBy  int // column, or -1
	reverse bool

	cursor, top   int // of shown
	chosen        string
	width, height int
}

func newTable[T any](l *look, key func(T) string, order func(a, b T) int, columns ...column[T]) table[T] {
	return table[T]{look: l, columns: columns, key: key, order: order, entries: map[string]*entry[T]{}, sortBy: -1}
}

func (t *table[T]) SetSize(width, height int) {
	t.width, t.height = width, height
	t.follow()
}

// compare puts rows in a total order.
func (t *table[T]) compare(a, b *entry[T]) int {
	by := 0
	if t.sortBy >= 0 {
		if c := &t.columns[t.sortBy]; c.number != nil {
			by = cmp.Compare(c.number(a.value), c.number(b.value))
		} else {
			by = naturalCompare(c.text(a.value), c.text(b.value))
		}
		if t.reverse {
			by = -by
		}
	}
	if by == 0 && t.order != nil {
		by = t.order(a.value, b.value)
	}
	if by == 0 {
		by = cmp.Or(naturalCompare(a.key, b.key), cmp.Compare(a.key, b.key))
	}
	return by
}

// Replace makes the rows anew.
func (t *table[T]) Replace(values []T) {
	t.entries, t.sorted = make(map[string]*entry[T], len(values)), t.sorted[:0:0]
	for _, value := range values {
		key := t.key(value)
		t.entries[key] = &entry[T]{key: key, value: value}
	}
	for _, value := range values { // mostly in order already, which is sorted fast
		if one := t.entries[t.key(value)]; !one.listed {
			one.listed = true
			t.sorted = append(t.sorted, one)
		}
	}
	t.resort()
}

// Put adds rows, or changes those that are there.
func (t *table[T]) Put(values []T) {
	few := len(values) <= 8+len(t.sorted)/16 // few are put in their place, many are sorted anew
	for _, value := range values {
		one := &entry[T]{key: t.key(value), value: value, listed: true}
		before := t.entries[one.key]
		t.entries[one.key] = one
		switch {
		case few:
			if before != nil {
				t.takeOut(before)
			}
			at, _ := slices.BinarySearchFunc(t.sorted, one, t.compare)
			t.sorted = slices.Insert(t.sorted, at, one)
		case before == nil:
			t.sorted = append(t.sorted, one)
		}
	}
	if !few {
		for i, one := range t.sorted {
			t.sorted[i] = t.entries[one.key]
		}
		t.resort()
		return
	}
	t.refilter()
}

func (t *table[T]) takeOut(one *entry[T]) {
	at, _ := slices.BinarySearchFunc(t.sorted, one, t.compare)
	if at >= len(t.sorted) || t.sorted[at] != one {
		at = slices.Index(t.sorted, one) // its place depended on something else that changed
	}
	if at >= 0 {
		t.sorted = slices.Delete(t.sorted, at, at+1)
	}
}

// Remove takes rows out.
func (t *table[T]) Remove(keys []string) {
	if len(keys) == 0 {
		return
	}
	for _, key := range keys {
		if one := t.entries[key]; one != nil {
			delete(t.entries, key)
			t.takeOut(one)
		}
	}
	t.refilter()
}

func (t *table[T]) resort() {
	t.sorted = slices.Clone(t.sorted) // what is shown may be the same
	slices.SortFunc(t.sorted, t.compare)
	t.refilter()
}

// SetFilter shows only rows that hold every word of a text, in any column.
func (t *table[T]) SetFilter(text string) {
	t.filter = text
	t.refilter()
}

func (t *table[T]) refilter() {
	words := strings.Fields(strings.ToLower(t.filter))
	if len(words) == 0 {
		t.shown = t.sorted
	} else {
		t.shown = make([]*entry[T], 0, len(t.shown))
		for _, one := range t.sorted {
			if t.matches(one, words) {
				t.shown = append(t.shown, one)
			}
		}
	}
	t.follow()
}

func (t *table[T]) matches(one *entry[T], words []string) bool {
	if one.search == "" {
		parts := []string{one.key}
		for i := range t.columns {
			parts = append(parts, t.columns[i].text(one.value))
		}
		one.search = strings.ToLower(strings.Join(parts, "\n"))
	}
	for _, word := range words {
		if !strings.Contains(one.search, word) {
			return false
		}
	}
	return true
}

// follow keeps the cursor on the chosen row, and within the screen.
func (t *table[T]) follow() {
	if t.chosen != "" && (t.cursor >= len(t.shown) || t.shown[t.cursor].key != t.chosen) {
		if at := slices.IndexFunc(t.shown, func(one *entry[T]) bool { return one.key == t.chosen }); at >= 0 {
			t.cursor = at
		}
	}
	t.cursor = max(0, min(t.cursor, len(t.shown)-1))
	if len(t.shown) > 0 {
		t.chosen = t.shown[t.cursor].key
	}
	rows := max(1, t.height-1)
	t.top = max(0, min(t.top, t.cursor, len(t.shown)-rows))
	if t.cursor >= t.top+rows {
		t.top = t.cursor - rows + 1
	}
}

// Value is the chosen row's.
func (t *table[T]) Value() (value T, is bool) {
	if t.cursor < len(t.shown) {
		return t.shown[t.cursor].value, true
	}
	return value, false
}

// Get is the value of a row.
func (t *table[T]) Get(key string) (value T, is bool) {
	if one := t.entries[key]; one != nil {
		return one.value, true
	}
	return value, false
}

// Count is "3", "3 of 10,000" with a filter.
func (t *table[T]) Count() string {
	if len(t.shown) == len(t.sorted) {
		return words.Number(int64(len(t.sorted)))
	}
	return words.Number(int64(len(t.shown))) + " of " + words.Number(int64(len(t.sorted)))
}

// Update moves the cursor and sorts; it reports whether the key meant something.
func (t *table[T]) Update(pressed tea.KeyPressMsg) bool {
	rows := max(1, t.height-1)
	switch {
	case key.Matches(pressed, keys.Up):
		t.choose(t.cursor - 1)
	case key.Matches(pressed, keys.Down):
		t.choose(t.cursor + 1)
	case key.Matches(pressed, keys.PageUp):
		t.choose(t.cursor - rows)
	case key.Matches(pressed, keys.PageDown):
		t.choose(t.cursor + rows)
	case key.Matches(pressed, keys.Top):
		t.choose(0)
	case key.Matches(pressed, keys.Bottom):
		t.choose(len(t.shown) - 1)
	case key.Matches(pressed, keys.Sort):
		if t.sortBy++; t.sortBy == len(t.columns) {
			t.sortBy = -1
		}
		t.resort()
	case key.Matches(pressed, keys.Reverse):
		t.reverse = !t.reverse
		if t.sortBy < 0 {
			t.sortBy = 0
		}
		t.resort()
	default:
		return false
	}
	return true
}

func (t *table[T]) choose(at int) {
	if len(t.shown) == 0 {
		return
	}
	t.cursor = max(0, min(at, len(t.shown)-1))
	t.chosen = t.shown[t.cursor].key
	t.follow()
}

// AtEnd reports whether the last row is chosen.
func (t *table[T]) AtEnd() bool { return t.cursor >= len(t.shown)-1 }

// visible are the columns that fit, with their widths.
func (t *table[T]) visible() (columns []*column[T], widths []int) {
	left, flexible := t.width-2, 0
	for i := range t.columns {
		c := &t.columns[i]
		if t.width < c.from {
			continue
		}
		columns, widths = append(columns, c), append(widths, c.width)
		left -= c.width + 1
		if c.width == 0 {
			flexible++
		}
	}
	for i := range widths {
		if widths[i] == 0 {
			widths[i] = max(6, (left+1)/flexible)
			left -= widths[i]
			flexible--
		}
	}
	return columns, widths
}

func (t *table[T]) View() string {
	columns, widths := t.visible()
	lines := make([]string, 0, t.height)
	head := make([]string, len(columns))
	for i, c := range columns {
		title := c.title
		if t.sortBy >= 0 && c == &t.columns[t.sortBy] {
			title += map[bool]string{false: "^", true: "v"}[t.reverse]
		}
		head[i] = fit(title, widths[i], c.right)
	}
	lines = append(lines, t.look.paint(t.look.dim, "  "+strings.Join(head, " ")))
	for i := t.top; i < min(len(t.shown), t.top+max(1, t.height-1)); i++ {
		lines = append(lines, t.row(t.shown[i].value, i == t.cursor, columns, widths))
	}
	return strings.Join(lines, "\n")
}

func (t *table[T]) row(value T, chosen bool, columns []*column[T], widths []int) string {
	var b strings.Builder
	for i, c := range columns {
		text := plain(c.text(value))
		if c.name {
			text = shorten(text, widths[i], t.look.glyphs.more)
		}
		text = fit(shortenEnd(text, widths[i], t.look.glyphs.more), widths[i], c.right)
		if c.paint != nil && !chosen {
			text = c.paint(value, text)
		}
		b.WriteString(text)
		if i < len(columns)-1 {
			b.WriteByte(' ')
		}
	}
	if chosen {
		return t.look.paint(t.look.chosen, t.look.glyphs.cursor+" "+b.String())
	}
	return "  " + b.String()
}

// fit pads a text to a width, or cuts it off.
func fit(text string, width int, right bool) string {
	missing := width - textWidth(text)
	switch {
	case missing < 0:
		return ansi.Truncate(text, width, "")
	case right:
		return strings.Repeat(" ", missing) + text
	}
	return text + strings.Repeat(" ", missing)
}

// shorten cuts the middle out of a text that is too long: names differ at both ends.
func shorten(text string, width int, mark string) string {
	if textWidth(text) <= width {
		return text
	}
	if width < 8 {
		return ansi.Truncate(text, width, mark)
	}
	tail := (width - textWidth(mark)) / 2
	return ansi.Truncate(text, width-tail, mark) + ansi.TruncateLeft(text, textWidth(text)-tail, "")
}

// textWidth is how many columns of the screen a text takes.
func textWidth(text string) int {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			return ansi.StringWidth(text)
		}
	}
	return len(text)
}

// naturalCompare compares texts, and numbers within them as numbers: n2 before n10.
func naturalCompare(a, b string) int {
	for a != "" && b != "" {
		if isDigit(a[0]) && isDigit(b[0]) {
			one, restA := leadingNumber(a)
			two, restB := leadingNumber(b)
			if by := cmp.Or(cmp.Compare(len(one), len(two)), cmp.Compare(one, two)); by != 0 {
				return by
			}
			a, b = restA, restB
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// leadingNumber splits off the digits that a text begins with, without zeros before them.
func leadingNumber(text string) (digits, rest string) {
	end := 0
	for end < len(text) && isDigit(text[end]) {
		end++
	}
	return strings.TrimLeft(text[:end], "0"), text[end:]
}

// shortenEnd cuts the end off a text that is too long.
func shortenEnd(text string, width int, mark string) string {
	if textWidth(text) <= width {
		return text
	}
	return fit(text, max(0, width-textWidth(mark)), false) + mark
}

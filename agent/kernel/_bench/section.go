package main

import (
	"fmt"
	"io"
	"strings"
)

// section is a table with what has to be said about it.
type section struct {
	title, text string
	table       *table
	aims        []*aim
	notes       []string // lines below the aims, which nobody is judged by
}

// print writes the section as Markdown.
func (s *section) print(to io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "## %s\n\n", s.title)
	for _, a := range s.aims {
		fmt.Fprintf(&text, "- %s\n", a)
	}
	for _, note := range s.notes {
		fmt.Fprintf(&text, "- %s\n", note)
	}
	if len(s.aims)+len(s.notes) > 0 {
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "%s\n%s\n\n", s.table, s.text)
	if _, err := io.WriteString(to, text.String()); err != nil {
		return fmt.Errorf("writing the table %q: %w", s.title, err)
	}
	return nil
}

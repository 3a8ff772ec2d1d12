package policies

import (
	"cmp"
	"slices"
	"strings"
)

// Severity says how bad a finding is.
type Severity int

// The severities.
const (
	Error   Severity = iota // the object would be refused, or would not do what it says
	Warning                 // it works, but probably not as meant
)

// String returns error or warning.
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Finding is one problem: where it is, what is wrong, and what to do.
type Finding struct {
	Position
	Severity Severity
	Object   string // kind/name, as far as known
	Path     string // such as spec.ladder[1]; empty for the object or file as a whole
	Message  string
}

// String returns file:line:col: kind/name: path: message, without the parts that are empty. A warning says so before
// its message.
func (f Finding) String() string {
	parts := []string{f.Position.String()}
	for _, part := range []string{f.Object, f.Path} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if f.Severity == Warning {
		parts = append(parts, "warning")
	}
	return strings.Join(append(parts, f.Message), ": ")
}

// Findings are problems, in the order of the files given and of the lines in them. As an error it is all of them, a
// line each.
type Findings []Finding

// Error returns all findings, a line each.
func (f Findings) Error() string {
	lines := make([]string, len(f))
	for i, finding := range f {
		lines[i] = finding.String()
	}
	return strings.Join(lines, "\n")
}

// Errors returns the findings that are errors.
func (f Findings) Errors() Findings { return f.with(Error) }

// Warnings returns the findings that are warnings.
func (f Findings) Warnings() Findings { return f.with(Warning) }

func (f Findings) with(severity Severity) Findings {
	var some Findings
	for _, finding := range f {
		if finding.Severity == severity {
			some = append(some, finding)
		}
	}
	return some
}

// of says of findings which object they are about.
func (f Findings) of(n *node) {
	kind, _ := n.get("kind").text()
	name, _ := n.get("metadata", "name").text()
	for i := range f {
		f[i].Object = strings.Trim(kind+"/"+name, "/")
	}
}

// sort orders by place, files in the order of names, and drops repetitions.
func (f Findings) sort(names []string) Findings {
	order := make(map[string]int, len(names))
	for i, name := range names {
		if _, known := order[name]; !known {
			order[name] = i
		}
	}
	slices.SortStableFunc(f, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(f)
}

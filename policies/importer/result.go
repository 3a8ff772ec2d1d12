package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/policies"
)

// Result is what came of an import.
type Result struct {
	Objects []policies.Object
	// Refused is what could not be expressed: every entry names a field of the input and says why.
	Refused []Refusal
	// Notes say what was expressed differently from how it was.
	Notes []string
}

// Refusal is a part of the input without a counterpart.
type Refusal struct {
	Field string // as in the input, such as Rules[0] (logs).Expiration
	Why   string
}

// String returns the field and why.
func (r Refusal) String() string { return r.Field + ": " + r.Why }

// YAML returns the objects as YAML, after comments with the notes and refusals.
func (r *Result) YAML() ([]byte, error) {
	var out bytes.Buffer
	for _, note := range r.Notes {
		comment(&out, note)
	}
	if len(r.Refused) > 0 {
		comment(&out, "Not carried over:")
		for _, refusal := range r.Refused {
			comment(&out, "- "+refusal.String())
		}
	}
	text, err := policies.Render(r.Objects...)
	if err != nil {
		return nil, err
	}
	out.Write(text)
	return out.Bytes(), nil
}

// comment writes a text as comments, whatever line ends are in it.
func comment(out *bytes.Buffer, text string) {
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n\r\u0085\u2028\u2029", r) }) {
		out.WriteString("# " + strings.Map(printable, line) + "\n")
	}
}

// printable replaces what YAML does not take even in comments, by the character for what cannot be shown.
func printable(character rune) rune {
	if unicode.IsPrint(character) {
		return character
	}
	return unicode.ReplacementChar
}

func (r *Result) refuse(field, format string, values ...any) {
	r.Refused = append(r.Refused, Refusal{Field: field, Why: fmt.Sprintf(format, values...)})
}

func (r *Result) note(format string, values ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, values...))
}

func (r *Result) policy(name string, spec v1alpha1.RedundancyPolicySpec) {
	r.Objects = append(r.Objects, policies.Object{
		Kind: "RedundancyPolicy", Name: name,
		Value: &v1alpha1.RedundancyPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
	})
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// objectName makes the name of an object, and of a class, of any text; fallback is for texts without letters and digits.
func (r *Result) objectName(kind, text, fallback string) string {
	const longest = 50
	name := notInNames.ReplaceAllString(strings.ToLower(text), "-")
	name = strings.Trim(name[:min(len(name), longest)], "-")
	if name == "" {
		name = fallback
	}
	unique := name
	for i := 2; slices.ContainsFunc(r.Objects, func(o policies.Object) bool { return o.Kind == kind && o.Name == unique }); i++ {
		unique = fmt.Sprintf("%s-%d", name, i)
	}
	return unique
}

// syntax says where a text is no JSON, as line and column.
func syntax(text []byte, err error) error {
	var mistake *json.SyntaxError
	if !errors.As(err, &mistake) {
		return err
	}
	before := text[:min(int(mistake.Offset), len(text))]
	line := 1 + bytes.Count(before, []byte("\n"))
	return fmt.Errorf("line %d, column %d: %w", line, len(before)-bytes.LastIndexByte(before, '\n')-1, err)
}

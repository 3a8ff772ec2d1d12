package screen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"charm.land/bubbles/v2/key"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// edit is a text on its way from the editor to the console: edited, then compared and planned, then applied when the
// person says so. Nothing is sent before that.
type edit struct {
	model  *Model
	name   string
	before string
	force  bool // take over fields that others have set
	text   string
	diff   *consolev1.DiffPolicyResponse
	plan   *consolev1.PlanPolicyResponse
	said   string // instead of them
	page   *textPage
}

// editChosen opens a policy in the person's editor.
func (m *Model) editChosen(chosen any) (tea.Cmd, bool) {
	one, is := chosen.(*consolev1.Policy)
	if !is {
		return nil, false
	}
	if m.options.Edit == nil {
		m.warn("nothing can be edited here: there is no editor")
		return nil, true
	}
	return ask(m.session, func(ctx context.Context) (*consolev1.PolicyDetail, error) {
		return m.options.Client.GetPolicy(ctx, &consolev1.GetPolicyRequest{Name: one.Name})
	}, func(detail *consolev1.PolicyDetail, err error) tea.Cmd {
		if err != nil {
			m.fail(err)
			return nil
		}
		e := &edit{model: m, name: one.Name, before: detail.Yaml, text: detail.Yaml}
		return e.edit()
	}), true
}

// edited is the end of the editor.
type edited struct {
	text string
	err  error
}

// edit hands the text to the editor, with the terminal.
func (e *edit) edit() tea.Cmd {
	path, err := writeDraft(e.name, e.text)
	if err != nil {
		e.model.fail(err)
		return nil
	}
	command, err := e.model.options.Edit(path)
	if err != nil {
		e.model.fail(errors.Join(err, os.RemoveAll(filepath.Dir(path))))
		return nil
	}
	return tea.Exec(command, func(err error) tea.Msg {
		text, err := readDraft(path, err)
		return answer{func() tea.Cmd { return e.take(edited{text, err}) }}
	})
}

// writeDraft writes a text to a file that this user alone can read.
func writeDraft(name, text string) (path string, err error) {
	directory, err := os.MkdirTemp("", "restripe-edit-")
	if err != nil {
		return "", fmt.Errorf("making a place for the draft: %w", err)
	}
	path = filepath.Join(directory, filepath.Base(name)+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", errors.Join(fmt.Errorf("writing the draft: %w", err), os.RemoveAll(directory))
	}
	return path, nil
}

// readDraft reads what the editor left, and removes it.
func readDraft(path string, failed error) (string, error) {
	text, err := os.ReadFile(path)
	return string(text), errors.Join(failed, err, os.RemoveAll(filepath.Dir(path)))
}

// take looks at what the editor left, and asks what it would change.
func (e *edit) take(draft edited) tea.Cmd {
	m := e.model
	if draft.err != nil {
		m.warn("editing " + plain(e.name) + ": " + plain(draft.err.Error()) + "; nothing was changed")
		return nil
	}
	if draft.text == e.before {
		m.say("nothing was changed in " + plain(e.name))
		return nil
	}
	e.text, e.diff, e.plan, e.said = draft.text, nil, nil, "Asking what this would change and move."
	e.page = &textPage{session: m.session, name: "changes to " + e.name, content: e.write, fetch: e.review, pressed: e.press}
	e.page.own = []keyGroup{{"The changes", []key.Binding{keys.Apply, keys.Edit, keys.Force}}}
	return m.open(e.page)
}

// review asks what the text would change and what it would move.
func (e *edit) review() tea.Cmd {
	type reviewed struct {
		diff *consolev1.DiffPolicyResponse
		plan *consolev1.PlanPolicyResponse
	}
	client, document, force := e.model.options.Client, e.document(), e.force
	return ask(e.model.session, func(ctx context.Context) (r reviewed, err error) {
		if r.diff, err = client.DiffPolicy(ctx, &consolev1.DiffPolicyRequest{Document: document, Force: force}); err != nil {
			return r, err
		}
		r.plan, err = client.PlanPolicy(ctx, &consolev1.PlanPolicyRequest{Document: document})
		return r, err
	}, func(r reviewed, err error) tea.Cmd {
		e.diff, e.plan, e.said = r.diff, r.plan, ""
		if err != nil {
			e.said = "It cannot be reviewed, and so not applied: " + failureText(err, e.model.options.Address)
		}
		return nil
	})
}

func (e *edit) document() *consolev1.Document {
	return &consolev1.Document{Name: e.name + ".yaml", Text: e.text, Format: consolev1.Format_FORMAT_YAML}
}

// mistaken reports whether what was written cannot be applied.
func (e *edit) mistaken() bool {
	if e.diff == nil || e.plan == nil {
		return true
	}
	for _, one := range append(e.diff.Findings, e.plan.Findings...) {
		if one.Severity == "error" {
			return true
		}
	}
	return false
}

// owned reports whether a field belongs to somebody else, which F takes over.
func (e *edit) owned() bool {
	return e.diff != nil && slices.ContainsFunc(e.diff.Findings, func(one *consolev1.Finding) bool { return one.Taken })
}

func (e *edit) write(s *script) {
	if e.said != "" {
		s.Text(e.said)
	}
	if e.diff == nil || e.plan == nil {
		return
	}
	if e.mistaken() {
		s.Text("This has mistakes and cannot be applied. e opens it again as you left it.")
		if e.owned() {
			s.Text("Some of these fields belong to whoever applied them first, such as `restripe apply` or kubectl; the API server keeps them theirs until somebody takes them over. F shows what would change if you do so. Whoever applies their file again then has to take them back the same way.")
		}
		writeFindings(s, append(e.diff.Findings, e.plan.Findings...))
		return
	}
	s.Text("Nothing is applied yet. A applies this, e opens it again, esc throws it away.")
	writeFindings(s, e.plan.Findings)
	for _, one := range e.diff.Differences {
		s.Head(one.Change, one.Object)
		for _, field := range one.Fields {
			s.Text(field.Path)
			if field.Before != "" {
				s.Raw(s.look.paint(s.look.bad, shortenEnd("  - "+plain(field.Before), s.width, s.look.glyphs.more)))
			}
			if field.After != "" {
				s.Raw(s.look.paint(s.look.good, shortenEnd("  + "+plain(field.After), s.width, s.look.glyphs.more)))
			}
		}
	}
	if len(e.diff.Differences) == 0 {
		s.Text("It would change nothing.")
	}
	writePlans(s, e.plan.Plans)
}

// writeFindings tells mistakes and where they are.
func writeFindings(s *script, findings []*consolev1.Finding) {
	told := map[string]bool{}
	for _, one := range findings {
		text := fmt.Sprintf("%s:%d:%d: %s: %s", one.File, one.Line, one.Column, one.Severity, one.Message)
		if told[text] {
			continue
		}
		told[text] = true
		style := s.look.warn
		if one.Severity == "error" {
			style = s.look.bad
		}
		for _, line := range wrapped(plain(text), s.width) {
			s.Raw(s.look.paint(style, line))
		}
	}
}

func (e *edit) press(pressed tea.KeyPressMsg) (tea.Cmd, bool) {
	m := e.model
	switch {
	case key.Matches(pressed, keys.Edit):
		m.close(e.page)
		return e.edit(), true
	case key.Matches(pressed, keys.Force):
		e.force = true
		return e.review(), true
	case key.Matches(pressed, keys.Apply):
		if e.mistaken() {
			m.warn("it cannot be applied: it has mistakes, or was not reviewed; e opens it again")
			return nil, true
		}
		question := "Apply these changes to " + plain(e.name)
		if e.force {
			question += ", and take over the fields that somebody else has set"
		}
		m.prompt = newQuestion(question+"? y applies them, any other key leaves them.", e.apply)
		return nil, true
	}
	return nil, false
}

// apply sends what was reviewed, with the hash of the plan that was looked at.
func (e *edit) apply() tea.Cmd {
	m := e.model
	hash := ""
	if len(e.plan.Plans) > 0 {
		hash = e.plan.Plans[0].PlanHash
	}
	return ask(m.session, func(ctx context.Context) (*consolev1.ApplyPolicyResponse, error) {
		return m.options.Client.ApplyPolicy(ctx, &consolev1.ApplyPolicyRequest{Document: e.document(), Force: e.force, PlanHash: hash})
	}, func(applied *consolev1.ApplyPolicyResponse, err error) tea.Cmd {
		if err != nil {
			m.fail(err)
			return nil
		}
		if len(applied.Applied) == 0 {
			e.diff = &consolev1.DiffPolicyResponse{Findings: applied.Findings}
			m.warn("nothing was applied: it has mistakes")
			return nil
		}
		one := applied.Applied[0]
		m.say(plain(one.Object) + " " + plain(one.Outcome))
		m.close(e.page)
		return nil
	})
}

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/screen"
)

// TestTUIWantsATerminal: without one nothing is drawn, and it is said what prints instead.
func TestTUIWantsATerminal(t *testing.T) {
	var out, messages bytes.Buffer
	if code := execute(t.Context(), []string{"tui"}, strings.NewReader("q"), &out, &messages); code != program.ExitFailed || !strings.Contains(messages.String(), "restripe status") || out.Len() > 0 {
		t.Errorf("exit code %d, %s", code, messages.String())
	}
}

// TestTUIToken: the token is the file's, without what ends the line, else the environment's.
func TestTUIToken(t *testing.T) {
	t.Setenv(screen.TokenVariable, "from-the-environment")
	if token, err := (&tuiFlags{}).token(); token != "from-the-environment" || err != nil {
		t.Error(token, err)
	}
	path := filepath.Join(t.TempDir(), "token")
	for text, want := range map[string]string{"secret\n": "secret", "": "", "two words": ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if token, err := (&tuiFlags{tokenFile: path}).token(); token != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, token, err)
		}
	}
	if _, err := (&tuiFlags{tokenFile: path + ".missing"}).token(); err == nil {
		t.Error("a file that is missing has a token")
	}
}

// TestTUIEditor: the editor may have arguments, and one that is missing is named.
func TestTUIEditor(t *testing.T) {
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "sh -c 'true'")
	command, err := editorFor("file.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if given := command.(editor).Args[1:]; len(given) != 3 || given[2] != "file.yaml" {
		t.Errorf("arguments %q", given)
	}
	t.Setenv("EDITOR", "no-such-editor")
	if _, err := editorFor("file.yaml"); err == nil || !strings.Contains(err.Error(), "EDITOR") {
		t.Error(err)
	}
}

package console

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// pagesFixtures are what the tests of the web pages take for answers of a console.
const pagesFixtures = "../../web/src/pictures/testdata"

func fixture(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(pagesFixtures, name))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPagesDrawTheseAnswers: the pictures that the web pages are tested with are what the console answers.
func TestPagesDrawTheseAnswers(t *testing.T) {
	for name, request := range map[string]*consolev1.GetPictureRequest{
		"merge-rs4-rs12":   {From: "rs(4,2)", To: "rs(12,2)"},
		"merge-rep3-rs12":  {From: "rep(3)", To: "rs(12,2)"},
		"widen-rs4-rs5":    {From: "rs(4,3)", To: "rs(5,3)"},
		"narrow-rs12-rs4":  {From: "rs(12,2)", To: "rs(4,2)"},
		"wide-rs32-rs64":   {From: "rs(32,4)", To: "rs(64,4)"},
		"proxy-rs4-rs6":    {From: "rs(4,2)", To: "rs(6,2)", Planner: "ers2-proxy"},
		"drop-rs4-3-rs4-2": {From: "rs(4,3)", To: "rs(4,2)"},
		"grow-rs4-2-rs4-3": {From: "rs(4,2)", To: "rs(4,3)"},
		"copy-rs2-rs4":     {From: "rs(2,1)", To: "rs(4,1)", Planner: "copy-pool"},
	} {
		var want, got any
		fixture(t, name+".json", &want)
		text, err := protojson.Marshal(drawn(t, request))
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is not what the pages are tested with (-fixture +answer):\n%s", name, diff)
		}
	}
}

// TestPagesSayItAlike: sizes, times and counts are worded as the web pages word them.
func TestPagesSayItAlike(t *testing.T) {
	var wordings map[string][]struct {
		In   float64 `json:"in"`
		Text string  `json:"text"`
	}
	fixture(t, "wording.json", &wordings)
	for kind, say := range map[string]func(float64) string{
		"sized":   func(bytes float64) string { return words.Bytes(int64(bytes)) },
		"about":   func(seconds float64) string { return "about " + words.About(words.Seconds(seconds)) },
		"counted": func(count float64) string { return words.Count(int64(count), "object") },
	} {
		if len(wordings[kind]) == 0 {
			t.Errorf("wording.json has nothing for %s", kind)
		}
		for _, pair := range wordings[kind] {
			if got := say(pair.In); got != pair.Text {
				t.Errorf("%s of %v is %q, and the pages say %q", kind, pair.In, got, pair.Text)
			}
		}
	}
}

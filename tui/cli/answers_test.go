package cli

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/tree"
)

var update = flag.Bool("update", false, "write what commands print in testdata/answers anew")

// TestAnswersAreShown types commands against a gateway that answers as the stories of testdata/answers say: states that
// a cluster is seldom in, and ones that it would take hours to come to. A story is an archive. Its comment says what it is
// about; a file "GET /v1/status" holds an answer in JSON, "POST /v1/sweep 503" a refusal with that status, and where a
// request is made again a name with (2), (3) what is answered then. In an answer "ago:5m" is the time five minutes ago and
// "in:2h" that in two hours. The file "typed" holds the commands after a $, and under each what became of it: > what was
// asked other than by GET, standard output as it is, standard error after an exclamation mark, and an exit code.
func TestAnswersAreShown(t *testing.T) {
	t.Parallel()
	stories, err := filepath.Glob("testdata/answers/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(stories) < 5 {
		t.Fatalf("only %d stories were found", len(stories))
	}
	for _, path := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			last := &archive.Files[len(archive.Files)-1]
			if last.Name != "typed" {
				t.Fatalf("the last file is %q, not typed", last.Name)
			}
			var shown strings.Builder
			for _, line := range strings.Split(string(last.Data), "\n") {
				if typed, is := strings.CutPrefix(line, "$ restripe "); is {
					shown.WriteString(line + "\n" + typedAt(t, archive.Files, shellWords(typed)))
				}
			}
			if *update {
				last.Data = []byte(shown.String())
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := string(last.Data); shown.String() != want {
				at, _ := tree.FirstDifference(strings.NewReader(shown.String()), strings.NewReader(want))
				line := 1 + strings.Count(want[:at], "\n")
				t.Errorf("line %d of what is typed differs; -update writes all of it anew, to be read before it is kept.\nhave:\n%s\nwant:\n%s",
					line, shown.String(), want)
			}
		})
	}
}

// typedAt runs one command against a gateway of the answers and tells what became of it.
func typedAt(t *testing.T, answers []txtar.File, words []string) string {
	gateway := &answeringGateway{t: t, answers: answers, asked: map[string]int{}}
	server := httptest.NewServer(gateway)
	defer server.Close()
	var out, messages bytes.Buffer
	code := execute(t.Context(), append([]string{"--gateway", server.URL}, words...), strings.NewReader(""), &out, &messages)
	server.Close()
	told := gateway.requests.String() + out.String()
	for line := range strings.Lines(messages.String()) {
		told += "! " + strings.ReplaceAll(line, server.URL, "http://gateway")
	}
	if code != program.ExitDone {
		told += fmt.Sprintf("exit code %d\n", code)
	}
	return told
}

// answeringGateway answers requests from a story.
type answeringGateway struct {
	t        *testing.T
	answers  []txtar.File
	mutex    sync.Mutex
	asked    map[string]int  // how often each request was made
	requests strings.Builder // those that change something
}

// ServeHTTP answers one request.
func (g *answeringGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		g.t.Error(err)
	}
	name := r.Method + " " + r.URL.RequestURI()
	if r.Method != http.MethodGet {
		fmt.Fprintf(&g.requests, "> %s\n", strings.TrimSpace(name+" "+string(body)))
	}
	g.asked[name]++
	answer, status := g.find(name, g.asked[name])
	if answer == nil {
		g.t.Errorf("the story has no answer to %s", name)
		status = http.StatusNotImplemented
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", `"0000000000000001.0000000000000001"`)
	w.WriteHeader(status)
	if _, err := w.Write(withTimes(answer)); err != nil {
		g.t.Error(err)
	}
}

// find returns the answer to a request that is made for the nth time: the last there is if it is made more often.
func (g *answeringGateway) find(name string, n int) (answer []byte, status int) {
	for _, file := range g.answers {
		asked, rest := file.Name, ""
		if at := strings.Index(file.Name[strings.Index(file.Name, " ")+1:], " "); at >= 0 {
			at += strings.Index(file.Name, " ") + 1
			asked, rest = file.Name[:at], file.Name[at+1:]
		}
		if asked != name {
			continue
		}
		nth, code := 1, http.StatusOK
		for _, word := range strings.Fields(rest) {
			if number, err := strconv.Atoi(strings.Trim(word, "()")); err != nil {
				g.t.Errorf("%q is not the name of an answer", file.Name)
			} else if strings.HasPrefix(word, "(") {
				nth = number
			} else {
				code = number
			}
		}
		if nth <= n {
			answer, status = file.Data, code
		}
	}
	return answer, status
}

var times = regexp.MustCompile(`"(ago|in):([0-9a-z.]+)"`)

// withTimes puts times in the places of what is said of them.
func withTimes(answer []byte) []byte {
	return times.ReplaceAllFunc(answer, func(found []byte) []byte {
		words := times.FindSubmatch(found)
		distance, err := time.ParseDuration(string(words[2]))
		if err != nil {
			return found
		}
		if string(words[1]) == "ago" {
			distance = -distance
		}
		return []byte(strconv.Quote(time.Now().Add(distance).UTC().Format(time.RFC3339Nano)))
	})
}

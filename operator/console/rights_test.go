package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"k8s.io/client-go/rest"

	"github.com/restripe/restripe/agent/access"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
)

// procedures are all calls of the contract, and whether they stream.
func procedures(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	methods := consolev1.File_console_v1_console_proto.Services().ByName("Console").Methods()
	for i := range methods.Len() {
		method := methods.Get(i)
		all["/"+consolev1connect.ConsoleName+"/"+string(method.Name())] = method.IsStreamingServer()
	}
	if len(all) < 40 {
		t.Fatalf("the contract has only %d calls", len(all))
	}
	return all
}

func TestEveryCallIsInTheTable(t *testing.T) {
	all := procedures(t)
	for procedure := range all {
		if _, known := rules[procedure]; !known {
			t.Errorf("%s has no rule: everybody is refused", procedure)
		}
	}
	for procedure, rule := range rules {
		if _, known := all[procedure]; !known {
			t.Errorf("the rule for %s is for no call", procedure)
		}
		if changes := rule.right.Verb != "" && rule.right.Verb.Changes(); changes != (rule.changes || rule.tries) {
			t.Errorf("%s needs the verb %q and changes %v", procedure, rule.right.Verb, rule.changes)
		}
	}
}

// deadServer names an API server that is not there.
func deadServer() *rest.Config { return &rest.Config{Host: "http://127.0.0.1:1"} }

// alone starts a console without an API server.
func alone(t *testing.T, authority access.Authority, change ...func(*Options)) (*Server, string) {
	t.Helper()
	options := Options{
		RESTConfig: deadServer(), Authority: authority, Compiler: yamlCompiler{}, AuditDirectory: t.TempDir(), Logger: quiet,
		Intervals: Intervals{Look: 50 * time.Millisecond, Stream: time.Millisecond},
	}
	for _, c := range change {
		c(&options)
	}
	return startConsole(t, options)
}

// tokensOf returns an authority with a user for every verb, named and with a token like it, and one without any.
func tokensOf(t *testing.T) access.Authority {
	t.Helper()
	text := "users:\n"
	user := func(name string, verbs ...access.Verb) {
		sum := sha256.Sum256([]byte(name))
		listed, err := json.Marshal(append([]access.Verb{}, verbs...))
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("- {name: %s, tokenSHA256: %s, verbs: %s}\n", name, hex.EncodeToString(sum[:]), listed)
	}
	user("nothing")
	for _, verb := range access.Verbs() {
		user("only-"+string(verb), verb)
	}
	path := filepath.Join(t.TempDir(), "users.yaml")
	write(t, path, text)
	authority, err := access.Users(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// answer is how a call ended: its code, empty for none, and its words.
type answer struct{ Code, Message string }

// call makes a call with an empty message by plain HTTP.
func call(t *testing.T, address, procedure, token string, streams bool) (a answer) {
	t.Helper()
	body, kind := []byte("{}"), "application/json"
	if streams {
		body, kind = append([]byte{0, 0, 0, 0, 2}, body...), "application/connect+json"
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+procedure, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if !streams {
		if err := json.NewDecoder(reply.Body).Decode(&a); err != nil {
			t.Fatalf("%s: %v", procedure, err)
		}
		return a
	}
	var head [5]byte
	if _, err := io.ReadFull(reply.Body, head[:]); err != nil {
		t.Fatalf("%s: %v", procedure, err)
	}
	text := make([]byte, binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(reply.Body, text); err != nil {
		t.Fatalf("%s: %v", procedure, err)
	}
	var end struct{ Error answer }
	if head[0]&2 != 0 { // the end of the stream
		if err := json.Unmarshal(text, &end); err != nil {
			t.Fatalf("%s: %v", procedure, err)
		}
	}
	return end.Error
}

// TestVerbsAreChecked makes every call as everybody.
func TestVerbsAreChecked(t *testing.T) {
	_, address := alone(t, tokensOf(t))
	for procedure, streams := range procedures(t) {
		if a := call(t, address, procedure, "", streams); a.Code != "unauthenticated" {
			t.Errorf("%s without a token: %v", procedure, a)
		}
		if a := call(t, address, procedure, "wrong", streams); a.Code != "unauthenticated" {
			t.Errorf("%s with a wrong token: %v", procedure, a)
		}
		needed := rules[procedure].right.Verb
		for _, verb := range append(access.Verbs(), "nothing") {
			user := "only-" + string(verb)
			if verb == "nothing" {
				user = "nothing"
			}
			a := call(t, address, procedure, user, streams)
			may := needed == "" || needed == verb || needed == access.Audit && verb == access.Get
			if may == (a.Code == "permission_denied") || a.Code == "unauthenticated" {
				t.Errorf("%s as %s: %v", procedure, user, a)
			}
			if a.Code == "permission_denied" && (!strings.Contains(a.Message, "the verb "+string(needed)) || !strings.Contains(a.Message, user)) {
				t.Errorf("%s as %s does not say what is missing: %v", procedure, user, a)
			}
		}
	}
}

func TestWhoAmI(t *testing.T) {
	_, address := alone(t, tokensOf(t))
	client := consolev1connect.NewConsoleClient(http.DefaultClient, "http://"+address, withToken("only-approve"))
	me, err := client.WhoAmI(t.Context(), &consolev1.WhoAmIRequest{})
	if err != nil || me.User != "only-approve" || me.By != "token" || len(me.Verbs) != 1 || me.Verbs[0] != "approve" {
		t.Error(me, err)
	}
	_, address = alone(t, access.Local())
	client = consolev1connect.NewConsoleClient(http.DefaultClient, "http://"+address)
	if me, err := client.WhoAmI(t.Context(), &consolev1.WhoAmIRequest{}); err != nil || len(me.Verbs) != len(access.Verbs()) || me.By != "local" {
		t.Error(me, err)
	}
}

// TestRefusedChangesAreRecorded: who tries what they may not do is in the audit log.
func TestRefusedChangesAreRecorded(t *testing.T) {
	server, address := alone(t, tokensOf(t))
	for procedure, rule := range rules {
		if rule.changes {
			call(t, address, procedure, "nothing", false)
		}
	}
	changes := 0
	for _, rule := range rules {
		if rule.changes {
			changes++
		}
	}
	list, err := server.ListAudit(t.Context(), &consolev1.ListAuditRequest{Filter: &consolev1.AuditFilter{User: "nothing"}})
	if err != nil || len(list.Actions) != changes {
		t.Fatalf("%d of %d refusals are recorded, %v", len(list.GetActions()), changes, err)
	}
	for _, action := range list.Actions {
		if action.Result != "refused" || !strings.Contains(action.Error, "verb") {
			t.Errorf("a refusal: %v", action)
		}
	}
}

// TestWatchesEndWithTheRight: who is taken out of the file is told nothing more.
func TestWatchesEndWithTheRight(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.yaml")
	sum := sha256.Sum256([]byte("token"))
	write(t, path, "users: [{name: ada, tokenSHA256: "+hex.EncodeToString(sum[:])+", verbs: [get]}]")
	authority, err := access.Users(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, address := alone(t, authority, func(o *Options) { o.Intervals.recheck = 10 * time.Millisecond })
	client := consolev1connect.NewConsoleClient(http.DefaultClient, "http://"+address, withToken("token"))
	watch, err := client.WatchNodes(t.Context(), &consolev1.WatchNodesRequest{})
	if err != nil || !watch.Receive() {
		t.Fatal(err, watch.Err())
	}
	write(t, path, "users: [{name: ada, tokenSHA256: "+hex.EncodeToString(sum[:])+", verbs: [plan]}] # no longer get")
	for watch.Receive() {
	}
	if connect.CodeOf(watch.Err()) != connect.CodePermissionDenied || !strings.Contains(watch.Err().Error(), "the verb get") {
		t.Errorf("a watch without the right: %v", watch.Err())
	}
}

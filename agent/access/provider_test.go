package access

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// login is an identity provider with two people, one of whom is in a group.
type login struct {
	t      *testing.T
	server *httptest.Server
	people *members
	client *http.Client
	down   bool
}

// members are people with groups.
type members struct{ *storage.Storage }

// SetUserinfoFromRequest says who somebody is, in their tokens.
func (m *members) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, request op.IDTokenRequest, scopes []string) error {
	if request.GetSubject() == "id2" {
		info.AppendClaims("groups", []string{"storage", "staff"})
	}
	return m.Storage.SetUserinfoFromRequest(ctx, info, request, scopes)
}

// asserted has what is known of people put into their tokens.
type asserted struct{ op.Client }

func (asserted) IDTokenUserinfoClaimsAssertion() bool { return true }

// GetClientByClientID returns a program that people sign in to.
func (m *members) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	found, err := m.Storage.GetClientByClientID(ctx, id)
	return asserted{found}, err
}

const back = "http://127.0.0.1:1/back"

func newLogin(t *testing.T) *login {
	t.Helper()
	l := &login{t: t}
	var handler http.Handler
	l.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(l.server.Close)
	l.client = l.server.Client()
	l.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	l.people = &members{storage.NewStorageWithClients(storage.NewUserStore(l.server.URL), map[string]*storage.Client{
		"restripe": storage.WebClient("restripe", "secret", back), "another": storage.WebClient("another", "secret", back),
	})}
	config := &op.Config{CryptoKey: [32]byte{1}, SupportedScopes: []string{"openid", "email"}}
	provider, err := op.NewProvider(config, l.people, op.StaticIssuer(l.server.URL))
	if err != nil {
		t.Fatal(err)
	}
	handler = provider
	return l
}

// follow sends a request and returns where the answer leads to.
func (l *login) follow(to string) *url.URL {
	l.t.Helper()
	reply, err := l.client.Get(to)
	if err != nil {
		l.t.Fatal(err)
	}
	text, err := io.ReadAll(reply.Body)
	if err := errors.Join(err, reply.Body.Close()); err != nil {
		l.t.Fatal(err)
	}
	next, err := reply.Location()
	if err != nil {
		l.t.Fatalf("%s: %s %s: %v", to, reply.Status, text, err)
	}
	return next
}

// token signs somebody in to a program, as a browser does, and returns their ID token.
func (l *login) token(user, program string) string {
	l.t.Helper()
	query := url.Values{
		"client_id": {program}, "redirect_uri": {back}, "response_type": {"code"}, "scope": {"openid email"}, "state": {"s"},
	}
	page := l.follow(l.server.URL + "/authorize?" + query.Encode())
	id := page.Query().Get("authRequestID")
	if err := l.people.CheckUsernamePassword(user, "verysecure", id); err != nil {
		l.t.Fatal(err)
	}
	code := l.follow(l.server.URL + "/authorize/callback?id=" + id).Query().Get("code")
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {back}}
	body := strings.NewReader(form.Encode())
	request, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, l.server.URL+"/oauth/token", body)
	if err != nil {
		l.t.Fatal(err)
	}
	request.SetBasicAuth(program, "secret")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	reply, err := l.client.Do(request)
	if err != nil {
		l.t.Fatal(err)
	}
	var answer oidc.AccessTokenResponse
	if err := errors.Join(json.NewDecoder(reply.Body).Decode(&answer), reply.Body.Close()); err != nil || answer.IDToken == "" {
		l.t.Fatalf("%s: %+v, %v", reply.Status, answer, err)
	}
	return answer.IDToken
}

// People sign in to a provider, and are known by what it says of them.
func TestPeopleOfAProvider(t *testing.T) {
	l, directory := newLogin(t), t.TempDir()
	authorities := filepath.Join(directory, "ca.crt")
	write(t, authorities, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.server.Certificate().Raw})))
	path, now := filepath.Join(directory, "users.yaml"), time.Now()
	declare := func(users string) {
		t.Helper()
		const providers = "providers: [{issuer: '%s', audience: restripe, ca: '%s', login: email}]\nusers:\n%s"
		write(t, path, fmt.Sprintf(providers, l.server.URL, authorities, users))
	}
	declare("- {name: one, login: test-user@zitadel.ch, verbs: [get, approve]}\n" +
		"- {name: group, group: storage, verbs: [get, pause], objects: [{may: [read]}]}\n" +
		"- {name: two, login: test-user2@zitadel.ch, verbs: [cancel]}\n")
	users, err := Users(path, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	first, second := l.token("test-user@127.0.0.1", "restripe"), l.token("test-user2", "restripe")
	l.down = true
	if who, err := users.Identify(t.Context(), with(first)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("while the provider is down: %v, %v", who, err)
	}
	l.down, now = false, now.Add(providerAgain)
	for _, test := range []struct {
		token, name string
		verbs       map[Verb]bool
		reads       bool
	}{
		{first, "test-user@zitadel.ch", map[Verb]bool{Get: true, Approve: true, Pause: false, Cancel: false}, false},
		{second, "test-user2@zitadel.ch", map[Verb]bool{Get: true, Approve: false, Pause: true, Cancel: true}, true},
	} {
		who, err := users.Identify(t.Context(), with(test.token))
		if err != nil || who.Name != test.name || who.Scope(Read).Has("k", "c") != test.reads {
			t.Fatalf("%+v, %v", who, err)
		}
		for verb, want := range test.verbs {
			if may, err := users.May(t.Context(), who, Right{Verb: verb, Resource: Policies}); may != want || err != nil {
				t.Errorf("%s %s: %v, %v", who.Name, verb, may, err)
			}
		}
	}
	forged := second[:strings.LastIndex(second, ".")] + first[strings.LastIndex(first, "."):]
	stranger := newLogin(t).token("test-user2", "restripe")
	refused := func(token, complaint string) {
		t.Helper()
		who, err := users.Identify(t.Context(), with(token))
		if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%v, %v; want %q", who, err, complaint)
		}
	}
	refused(forged, "signature")
	refused(l.token("test-user2", "another"), "audience")
	refused(stranger, "no provider of the server")
	refused("a.b.c", "neither among those of the server")
	refused("x", "not among those of the server")
	declare("- {name: one, login: test-user@zitadel.ch, verbs: [get]}\n")
	refused(second, "test-user2@zitadel.ch nor a group of theirs (storage, staff)")
	now = now.Add(24 * time.Hour)
	refused(first, "expired")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := users.Identify(t.Context(), with(first)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without a file: %v", err)
	}
}

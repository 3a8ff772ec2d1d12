package access

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Provider is an identity provider (OpenID Connect), whose ID tokens are believed.
type Provider struct {
	Issuer   string `json:"issuer"`           // https://host, as in its tokens
	Audience string `json:"audience"`         // for whom its tokens have to be
	CA       string `json:"ca,omitempty"`     // a file of authorities that vouch for it; default: those of the system
	Login    string `json:"login,omitempty"`  // the claim that names a person; default sub
	Groups   string `json:"groups,omitempty"` // the claim that lists their groups; default groups
}

// Bounds on waiting for a provider.
const (
	providerPatience = 10 * time.Second
	providerAgain    = 5 * time.Second // after one that could not be asked
)

// provider checks the tokens of a Provider. It is asked for its keys when a token needs them.
type provider struct {
	Provider
	client *http.Client
	now    func() time.Time

	mutex    sync.Mutex // of what follows
	verifier *oidc.IDTokenVerifier
	failed   error // why there is none
	asked    time.Time
}

func (k *known) addProvider(declared Provider, before *provider, now func() time.Time) error {
	at, err := url.Parse(declared.Issuer)
	switch {
	case err != nil || at.Scheme != "https" || at.Host == "":
		return fmt.Errorf("the provider %q: want an issuer such as https://login.example.org", declared.Issuer)
	case declared.Audience == "":
		return fmt.Errorf("the provider %s has no audience: without it every token of it would count, whoever it is for", declared.Issuer)
	case k.providers[declared.Issuer] != nil:
		return fmt.Errorf("the provider %s is declared twice", declared.Issuer)
	}
	if before != nil && before.Provider == declared {
		k.providers[declared.Issuer] = before
		return nil
	}
	p := &provider{Provider: declared, now: now, client: &http.Client{
		Timeout:       providerPatience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	encryption := &tls.Config{MinVersion: tls.VersionTLS12}
	if declared.CA != "" {
		text, err := os.ReadFile(declared.CA)
		if err != nil {
			return fmt.Errorf("the authorities of the provider %s: %w", declared.Issuer, err)
		}
		if encryption.RootCAs = x509.NewCertPool(); !encryption.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("the authorities of the provider %s: %s has no certificate in PEM", declared.Issuer, declared.CA)
		}
	}
	p.client.Transport = &http.Transport{TLSClientConfig: encryption, Proxy: http.ProxyFromEnvironment, IdleConnTimeout: time.Minute}
	k.providers[declared.Issuer] = p
	return nil
}

// ready returns what verifies tokens, once the provider has said where its keys are.
func (p *provider) ready() (*oidc.IDTokenVerifier, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.now()
	if p.verifier != nil || p.failed != nil && now.Sub(p.asked) < providerAgain {
		return p.verifier, p.failed
	}
	p.asked = now
	ctx := oidc.ClientContext(context.Background(), p.client)
	found, err := oidc.NewProvider(ctx, p.Issuer)
	if p.failed = err; err == nil {
		p.verifier = found.VerifierContext(ctx, &oidc.Config{ClientID: p.Audience, Now: p.now})
	}
	return p.verifier, p.failed
}

// signedIn returns whom a token of a provider is of, with all that is granted to them and their groups.
func (k *known) signedIn(ctx context.Context, token string) (*User, error) {
	unverified, err := oidc.NewVerifier("", nothing{}, &oidc.Config{
		SkipClientIDCheck: true, SkipExpiryCheck: true, SkipIssuerCheck: true, InsecureSkipSignatureCheck: true,
	}).Verify(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("%w: the token is neither among those of the server nor one of a provider: %w", ErrUnknown, err)
	}
	p := k.providers[unverified.Issuer]
	if p == nil {
		return nil, fmt.Errorf("%w: the token is of %q, which is no provider of the server", ErrUnknown, unverified.Issuer)
	}
	verifier, err := p.ready()
	if err != nil {
		return nil, fmt.Errorf("%w: asking the provider %s: %w", ErrUnavailable, p.Issuer, err)
	}
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("%w: the token of %s: %w", ErrUnknown, p.Issuer, err)
	}
	return k.claimed(p, verified)
}

func (k *known) claimed(p *provider, verified *oidc.IDToken) (*User, error) {
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return nil, fmt.Errorf("%w: the claims of the token: %w", ErrUnknown, err)
	}
	claim := cmp.Or(p.Login, "sub")
	login, _ := claims[claim].(string)
	if login == "" {
		return nil, fmt.Errorf("%w: the token of %s has no claim %q that names a person", ErrUnknown, p.Issuer, claim)
	}
	if verifiedMail, said := claims["email_verified"].(bool); claim == "email" && said && !verifiedMail {
		return nil, fmt.Errorf("%w: %s has not verified that %s is of who signed in", ErrUnknown, p.Issuer, login)
	}
	who := &User{Name: login, By: ByProvider}
	entries := []*FileUser{k.logins[login]}
	groups, _ := claims[cmp.Or(p.Groups, "groups")].([]any)
	for _, one := range groups {
		if name, is := one.(string); is {
			who.Groups = append(who.Groups, name)
			entries = append(entries, k.groups[name])
		}
	}
	known := false
	for _, entry := range entries {
		if entry == nil || entry.Expires != nil && !p.now().Before(*entry.Expires) {
			continue
		}
		known = true
		who.verbs = append(who.verbs, entry.Verbs...)
		who.objects = append(who.objects, entry.Objects...)
	}
	if !known {
		return nil, fmt.Errorf("%w: neither %s nor a group of theirs (%s) is among the users of the server",
			ErrUnknown, login, strings.Join(who.Groups, ", "))
	}
	return who, nil
}

// nothing has no keys.
type nothing struct{}

func (nothing) VerifySignature(context.Context, string) ([]byte, error) {
	return nil, errors.New("there are no keys")
}

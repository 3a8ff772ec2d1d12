package pki

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/spiffetls/tlsconfig"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
)

// ErrRefused says that somebody may not do what they ask for; the text says who they are and why not.
var ErrRefused = errors.New("refused")

// Source is who a process is and whom it believes: the files CertificateFile, KeyFile, AuthorityFile and, where there is one,
// RevokedFile of a directory. They are read again when they change, so that a certificate is renewed without a restart. Safe for
// concurrent use.
type Source struct {
	directory string

	every time.Duration // how often files are looked at

	mutex  sync.Mutex
	looked time.Time
	stamps [4]stamp
	loaded *loaded
	failed error                // why what the files say now is not taken; nil: it is
	agents map[string]time.Time // when the certificates of agents expire that were dialled, by node
}

// loaded is what the files say.
type loaded struct {
	own      *x509svid.SVID
	identity Identity
	bundle   *x509bundle.Bundle
	revoked  map[string]bool // by serial number, decimal
}

// stamp is how a file looked when it was read.
type stamp struct {
	size    int64
	changed time.Time
}

// lookEvery is how often files are looked at, while somebody asks.
const lookEvery = time.Second

// Load reads the files in a directory.
func Load(directory string) (*Source, error) {
	s := &Source{directory: directory, every: lookEvery, looked: time.Now()}
	stamps := s.look()
	now, err := s.read()
	if err != nil {
		return nil, err
	}
	s.stamps, s.loaded = stamps, now
	return s, nil
}

func (s *Source) look() (stamps [4]stamp) {
	for i, name := range []string{CertificateFile, KeyFile, AuthorityFile, RevokedFile} {
		if info, err := os.Stat(filepath.Join(s.directory, name)); err == nil {
			stamps[i] = stamp{info.Size(), info.ModTime()}
		}
	}
	return stamps
}

// current returns what the files say now. While they are being exchanged, and so do not belong together, it is what they said
// before.
func (s *Source) current() *loaded {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if time.Since(s.looked) < s.every {
		return s.loaded
	}
	s.looked = time.Now()
	if stamps := s.look(); stamps != s.stamps {
		now, err := s.read()
		if s.failed = err; err == nil {
			s.stamps, s.loaded = stamps, now
		}
	}
	return s.loaded
}

// Err returns why what the files say now is not taken, so that what they said before holds; nil if it is.
func (s *Source) Err() error {
	s.current()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.failed
}

func (s *Source) read() (*loaded, error) {
	path := func(name string) string { return filepath.Join(s.directory, name) }
	certificate, err := os.ReadFile(path(CertificateFile))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of this process: %w; `restripe pki issue` makes one", err)
	}
	key, err := os.ReadFile(path(KeyFile))
	if err != nil {
		return nil, fmt.Errorf("reading the key of this process: %w", err)
	}
	now := &loaded{revoked: map[string]bool{}}
	if now.own, err = x509svid.Parse(certificate, key); err != nil {
		return nil, fmt.Errorf("the certificate and the key in %s: %w", s.directory, err)
	}
	if now.identity, err = identityOf(now.own.ID); err != nil {
		return nil, fmt.Errorf("the certificate in %s: %w", path(CertificateFile), err)
	}
	authorities, err := os.ReadFile(path(AuthorityFile))
	if err != nil {
		return nil, fmt.Errorf("reading whom to believe: %w", err)
	}
	if now.bundle, err = x509bundle.Parse(now.own.ID.TrustDomain(), authorities); err != nil {
		return nil, fmt.Errorf("the authorities in %s: %w", path(AuthorityFile), err)
	}
	revoked, err := os.ReadFile(path(RevokedFile))
	if errors.Is(err, os.ErrNotExist) {
		return now, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is revoked: %w", err)
	}
	return now, now.readRevoked(revoked, path(RevokedFile))
}

// readRevoked takes the lists in a text, each of which one of the authorities has signed.
func (l *loaded) readRevoked(text []byte, path string) error {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return fmt.Errorf("what is revoked, in %s: %w", path, err)
		}
		if !slices.ContainsFunc(l.bundle.X509Authorities(), func(one *x509.Certificate) bool { return list.CheckSignatureFrom(one) == nil }) {
			return fmt.Errorf("what is revoked, in %s, is signed by none of the authorities beside it", path)
		}
		for _, entry := range list.RevokedCertificateEntries {
			l.revoked[entry.SerialNumber.String()] = true
		}
	}
	return nil
}

// Identity returns who the process is.
func (s *Source) Identity() Identity { return s.current().identity }

// Expires returns until when the process is believed.
func (s *Source) Expires() time.Time { return s.current().own.Certificates[0].NotAfter }

// Reached reports whether the certificate names a host, a name or an address, under which browsers and other programs reach the process.
func (s *Source) Reached(host string) bool {
	return s.current().own.Certificates[0].VerifyHostname(host) == nil
}

// GetX509SVID implements x509svid.Source.
func (s *Source) GetX509SVID() (*x509svid.SVID, error) { return s.current().own, nil }

// GetX509BundleForTrustDomain implements x509bundle.Source.
func (s *Source) GetX509BundleForTrustDomain(domain spiffeid.TrustDomain) (*x509bundle.Bundle, error) {
	return s.current().bundle.GetX509BundleForTrustDomain(domain)
}

// Server returns the configuration of a server that lets in whoever of its cluster has one of the roles.
func (s *Source) Server(roles ...Role) *tls.Config {
	config := tlsconfig.MTLSServerConfig(s, s, s.authorizer("", roles))
	config.VerifyPeerCertificate = s.explained(config.VerifyPeerCertificate)
	return config
}

// Doors returns the configuration of a server for everybody. Who shows a certificate has to be of its cluster; others have to say in
// another way who they are.
func (s *Source) Doors() *tls.Config {
	config := s.Server(Roles...)
	verify := config.VerifyPeerCertificate
	config.ClientAuth = tls.RequestClientCert
	config.VerifyPeerCertificate = func(shown [][]byte, chains [][]*x509.Certificate) error {
		if len(shown) == 0 {
			return nil
		}
		return verify(shown, chains)
	}
	return config
}

// Serving returns the configuration of a server for everybody, of whom none is asked for a certificate.
func (s *Source) Serving() *tls.Config {
	config := s.Server(Roles...)
	config.ClientAuth, config.VerifyPeerCertificate = tls.NoClientCert, nil
	return config
}

// Client returns the configuration of a client that talks to whoever of its cluster has one of the roles and, unless it is empty,
// that name. Host names are not looked at: addresses are no identities.
func (s *Source) Client(name string, roles ...Role) *tls.Config {
	config := tlsconfig.MTLSClientConfig(s, s, s.authorizer(name, roles))
	config.VerifyPeerCertificate = s.explained(config.VerifyPeerCertificate)
	return config
}

func (s *Source) authorizer(name string, roles []Role) tlsconfig.Authorizer {
	return func(id spiffeid.ID, chains [][]*x509.Certificate) error {
		now := s.current()
		other, err := identityOf(id)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrRefused, err)
		case other.Cluster != now.identity.Cluster:
			return fmt.Errorf("%w: %s is of another cluster than %s", ErrRefused, id, now.identity)
		case !slices.Contains(roles, other.Role):
			return fmt.Errorf("%w: %s has none of the roles %v, which this takes", ErrRefused, id, roles)
		case name != "" && other.Name != name:
			return fmt.Errorf("%w: %s is not %s", ErrRefused, id, name)
		}
		for _, chain := range chains {
			if now.revoked[chain[0].SerialNumber.String()] {
				return fmt.Errorf("%w: the certificate of %s is revoked", ErrRefused, id)
			}
		}
		return nil
	}
}

// Peer is who is at the other end of a connection.
type Peer struct {
	Identity

	source  *Source
	serial  string
	expires time.Time
}

// Handshake shakes hands over a connection that a listener of Server has accepted, and returns who has connected.
func (s *Source) Handshake(ctx context.Context, conn net.Conn) (*Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakePatience)
	defer cancel()
	encrypted, is := conn.(*tls.Conn)
	if !is {
		return nil, fmt.Errorf("%w: the connection is not encrypted", ErrRefused)
	}
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("shaking hands with %s: %w", conn.RemoteAddr(), err)
	}
	state := encrypted.ConnectionState()
	return s.PeerOf(&state)
}

// PeerOf returns who is at the other end of a connection whose hands were shaken under Server or Doors, and has shown a certificate.
func (s *Source) PeerOf(state *tls.ConnectionState) (*Peer, error) {
	certificate := state.PeerCertificates[0]
	identity, err := identityIn(certificate)
	if err != nil {
		return nil, err
	}
	return &Peer{Identity: identity, source: s, serial: certificate.SerialNumber.String(), expires: certificate.NotAfter}, nil
}

// Check reports whether the peer is still to be believed: its certificate may have expired since, or have been revoked.
func (p *Peer) Check() error {
	switch {
	case time.Now().After(p.expires):
		return fmt.Errorf("%w: the certificate of %s has expired at %s", ErrRefused, p.Identity, p.expires.UTC().Format(time.RFC3339))
	case p.source.current().revoked[p.serial]:
		return fmt.Errorf("%w: the certificate of %s is revoked", ErrRefused, p.Identity)
	}
	return nil
}

// handshakePatience bounds how long the other side may take to say who it is.
const handshakePatience = 10 * time.Second

// DialAgent returns what connects to an address where an agent of the cluster must listen: that of a node, or of any where the name
// is empty.
func (s *Source) DialAgent(node string) func(ctx context.Context, address string) (net.Conn, error) {
	dialer := tls.Dialer{Config: s.Client(node, RoleAgent)}
	return func(ctx context.Context, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, handshakePatience)
		defer cancel()
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if encrypted, is := conn.(*tls.Conn); is && err == nil {
			s.note(encrypted.ConnectionState().PeerCertificates[0])
		}
		return conn, err
	}
}

func (s *Source) note(certificate *x509.Certificate) {
	identity, err := identityIn(certificate)
	if err != nil {
		return // it was authorized by its identity a moment ago
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.agents == nil {
		s.agents = map[string]time.Time{}
	}
	s.agents[identity.Name] = certificate.NotAfter
}

// Agent returns when the certificate expires that the agent of a node showed last; false if it was not dialled yet.
func (s *Source) Agent(node string) (expires time.Time, known bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	expires, known = s.agents[node]
	return expires, known
}

// identityIn returns the identity in a certificate.
func identityIn(certificate *x509.Certificate) (Identity, error) {
	id, err := x509svid.IDFromCert(certificate)
	if err != nil {
		return Identity{}, fmt.Errorf("the identity in a certificate: %w", err)
	}
	return identityOf(id)
}

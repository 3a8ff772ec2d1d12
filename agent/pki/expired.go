package pki

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// ErrAuthorityExpired says that an authority has expired, so that nobody is believed whom it has certified; the text says which one,
// when, and what to do.
var ErrAuthorityExpired = errors.New("the authority has expired")

// AuthorityCure is what people do about an authority that has expired, or soon does.
const AuthorityCure = "make a new authority in another directory with `restripe pki init`, put its " + AuthorityFile +
	" behind the old one in every " + AuthorityFile + " while that one is valid, and have every certificate renewed by it, as " +
	"`restripe pki renew --ca DIRECTORY` does"

// expiredError is ErrAuthorityExpired of the authority in a file or directory.
func expiredError(where string, at time.Time) error {
	return fmt.Errorf("%w: %s, at %s; %s", ErrAuthorityExpired, where, at.UTC().Format(time.RFC3339), AuthorityCure)
}

// AuthorityExpires returns until when the authority is believed that has signed the certificate of the process; where none of those
// in AuthorityFile has, until when the last of them is.
func (s *Source) AuthorityExpires() (expires time.Time) {
	now := s.current()
	signed := now.own.Certificates[len(now.own.Certificates)-1]
	authorities := now.bundle.X509Authorities()
	signers := slices.DeleteFunc(slices.Clone(authorities), func(one *x509.Certificate) bool { return signed.CheckSignatureFrom(one) != nil })
	if len(signers) == 0 {
		signers = authorities
	}
	for _, one := range signers {
		if one.NotAfter.After(expires) {
			expires = one.NotAfter
		}
	}
	return expires
}

// CheckAuthority reports ErrAuthorityExpired where the authority has expired that has signed the certificate of the process.
func (s *Source) CheckAuthority() error {
	if expires := s.AuthorityExpires(); time.Now().After(expires) {
		return expiredError(filepath.Join(s.directory, AuthorityFile), expires)
	}
	return nil
}

// CheckAuthorities reports ErrAuthorityExpired where every certificate of a file has expired, whose text is given in PEM.
func CheckAuthorities(path string, text []byte) error {
	var last time.Time
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("the authorities in %s: %w", path, err)
		}
		if one.NotAfter.After(last) {
			last = one.NotAfter
		}
	}
	if !last.IsZero() && time.Now().After(last) {
		return expiredError(path, last)
	}
	return nil
}

// verifier is the type of tls.Config.VerifyPeerCertificate.
type verifier = func(shown [][]byte, chains [][]*x509.Certificate) error

// explained returns a verifier that says of one that refuses because an authority has expired, which one and what to do.
func (s *Source) explained(verify verifier) verifier {
	return func(shown [][]byte, chains [][]*x509.Certificate) error {
		err := verify(shown, chains)
		var invalid x509.CertificateInvalidError
		if !errors.As(err, &invalid) || invalid.Reason != x509.Expired || !time.Now().After(invalid.Cert.NotAfter) ||
			!slices.ContainsFunc(s.current().bundle.X509Authorities(), invalid.Cert.Equal) {
			return err
		}
		return fmt.Errorf("%w: %w", expiredError(filepath.Join(s.directory, AuthorityFile), invalid.Cert.NotAfter), err)
	}
}

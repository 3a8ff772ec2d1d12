package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/atomicfile"
	"github.com/restripe/restripe/agent/flock"
)

// Files of an authority, and of what it issues. Those of certificates have the names that cert-manager gives them.
const (
	authorityKeyFile = "ca.key"
	issuedFile       = "issued.json"
	lockFile         = "lock"

	AuthorityFile   = "ca.crt"
	RevokedFile     = "ca.crl"
	CertificateFile = "tls.crt"
	KeyFile         = "tls.key"
)

// How long what an authority signs is valid. A certificate may be renewed at any time.
const (
	DefaultLife          = 90 * 24 * time.Hour
	DefaultAuthorityLife = 10 * 365 * 24 * time.Hour
	clockSlack           = 5 * time.Minute // by which the clock of one who checks may be behind
)

// Authority issues certificates for one cluster. Its key is in its directory; no part of a cluster needs that but who issues.
type Authority struct {
	Cluster string

	directory   string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         func() time.Time
}

// Issued is a certificate that an authority has issued.
type Issued struct {
	Serial   string     `json:"serial"` // hexadecimal
	Identity Identity   `json:"identity"`
	Hosts    []string   `json:"hosts,omitempty"`
	Issued   time.Time  `json:"issued"`
	Expires  time.Time  `json:"expires"`
	Revoked  *time.Time `json:"revoked,omitempty"`
}

// Create makes an authority in a directory, which may have none, for DefaultAuthorityLife. cluster is its name in identities: a-z,
// 0-9, dot, dash and underscore.
func Create(directory, cluster string) (*Authority, error) {
	return CreateFor(directory, cluster, DefaultAuthorityLife)
}

// CreateFor is Create for another time. Nothing that the authority has signed is believed after it.
func CreateFor(directory, cluster string, life time.Duration) (*Authority, error) {
	return create(directory, cluster, life, time.Now())
}

func create(directory, cluster string, life time.Duration, now time.Time) (*Authority, error) {
	if _, err := (Identity{Cluster: cluster, Role: RoleAdmin, Name: "x"}).id(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the authority: %w", err)
	}
	release, err := lock(directory)
	if err != nil {
		return nil, err
	}
	defer release()
	if _, err := os.Stat(filepath.Join(directory, authorityKeyFile)); !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("there is an authority in %s: issue with it, or name another directory", directory), err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of the authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serialNumber(), Subject: pkix.Name{CommonName: "restripe " + cluster},
		URIs:      []*url.URL{{Scheme: "spiffe", Host: cluster}},
		NotBefore: now.Add(-clockSlack), NotAfter: now.Add(life),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing the authority's certificate: %w", err)
	}
	keyText, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	// The key last: without it there is no authority yet.
	if err := atomicfile.Write(filepath.Join(directory, AuthorityFile), encodePEM("CERTIFICATE", der)); err != nil {
		return nil, err
	}
	if err := atomicfile.Write(filepath.Join(directory, authorityKeyFile), keyText); err != nil {
		return nil, err
	}
	return Open(directory)
}

// Open opens the authority in a directory.
func Open(directory string) (*Authority, error) {
	certificate, err := readCertificate(filepath.Join(directory, AuthorityFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no authority in %s: %w; make one with `restripe pki init`", directory, err)
	}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(directory, authorityKeyFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the authority: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s has no key in PEM", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the key in %s: %w", path, err)
	}
	own, is := key.(*ecdsa.PrivateKey)
	if !is || !own.PublicKey.Equal(certificate.PublicKey) || len(certificate.URIs) != 1 {
		return nil, fmt.Errorf("%s and %s in %s do not belong together", AuthorityFile, authorityKeyFile, directory)
	}
	return &Authority{Cluster: certificate.URIs[0].Host, directory: directory, certificate: certificate, key: own, now: time.Now}, nil
}

// Issue makes a key and a certificate for an identity of the cluster, and leaves them in a directory with what others are checked
// by. hosts are the names and addresses under which browsers and other programs reach it. life 0 is DefaultLife.
func (a *Authority) Issue(identity Identity, hosts []string, life time.Duration, into string) (Issued, error) {
	identity.Cluster = a.Cluster
	id, err := identity.id()
	if err != nil {
		return Issued{}, err
	}
	if life == 0 {
		life = DefaultLife
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Issued{}, fmt.Errorf("making a key for %s: %w", identity, err)
	}
	now := a.now()
	if expires := a.certificate.NotAfter; now.After(expires) {
		return Issued{}, expiredError(a.directory, expires)
	}
	template := &x509.Certificate{
		SerialNumber: serialNumber(), Subject: pkix.Name{CommonName: identity.Name}, URIs: []*url.URL{id.URL()},
		NotBefore: now.Add(-clockSlack), NotAfter: now.Add(life),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Issued{}, fmt.Errorf("signing the certificate of %s: %w", identity, err)
	}
	keyText, err := encodeKey(key)
	if err != nil {
		return Issued{}, err
	}
	issued := Issued{
		Serial: template.SerialNumber.Text(16), Identity: identity, Hosts: hosts, Issued: now.UTC().Truncate(time.Second),
		Expires: template.NotAfter.UTC().Truncate(time.Second),
	}
	// Nobody else issues until all is written: two that issue into one directory would leave a key beside another's certificate.
	release, err := lock(a.directory)
	if err != nil {
		return Issued{}, err
	}
	defer release()
	var revoked []byte
	// Recorded first: what is not known to the authority could not be revoked.
	if err := a.record(func(list []Issued) ([]Issued, error) {
		revoked, err = a.revocations(list)
		return append(list, issued), err
	}); err != nil {
		return Issued{}, err
	}
	if err := os.MkdirAll(into, 0o700); err != nil {
		return Issued{}, fmt.Errorf("making a directory for the certificate: %w", err)
	}
	for _, file := range []struct {
		name string
		text []byte
	}{
		{AuthorityFile, encodePEM("CERTIFICATE", a.certificate.Raw)}, {RevokedFile, revoked},
		{KeyFile, keyText}, {CertificateFile, encodePEM("CERTIFICATE", der)},
	} {
		if err := atomicfile.Write(filepath.Join(into, file.name), file.text); err != nil {
			return Issued{}, err
		}
	}
	return issued, nil
}

// Renew issues the certificate in a directory anew, with a key of its own. The one before stays valid until it expires.
func (a *Authority) Renew(directory string, life time.Duration) (Issued, error) {
	old, err := readCertificate(filepath.Join(directory, CertificateFile))
	if err != nil {
		return Issued{}, err
	}
	identity, err := identityIn(old)
	if err != nil {
		return Issued{}, err
	}
	if identity.Cluster != a.Cluster {
		return Issued{}, fmt.Errorf("the certificate in %s is of cluster %s, and this authority is of cluster %s",
			directory, identity.Cluster, a.Cluster)
	}
	hosts := slices.Clone(old.DNSNames)
	for _, ip := range old.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return a.Issue(identity, hosts, life, directory)
}

// List returns what was issued and has not expired, the oldest first.
func (a *Authority) List() (list []Issued, err error) {
	return list, a.change(func(all []Issued) ([]Issued, error) {
		list = slices.Clone(all)
		return all, nil
	})
}

// Revoke says that certificates are not valid any more: the one of a serial number, or all of a role and name, as ROLE/NAME. It
// returns how many. Those who check learn it from the file RevokedFile of the authority, once it is put beside their certificates.
func (a *Authority) Revoke(which string) (count int, err error) {
	err = a.change(func(list []Issued) ([]Issued, error) {
		now := a.now().UTC().Truncate(time.Second)
		for i := range list {
			one := &list[i]
			if one.Revoked == nil && (one.Serial == which || string(one.Identity.Role)+"/"+one.Identity.Name == which) {
				one.Revoked = &now
				count++
			}
		}
		if count == 0 {
			return nil, fmt.Errorf("%q is neither the serial number nor the ROLE/NAME of a certificate that is valid; "+
				"`restripe pki list` shows them", which)
		}
		revoked, err := a.revocations(list)
		if err != nil {
			return nil, err
		}
		return list, atomicfile.Write(filepath.Join(a.directory, RevokedFile), revoked)
	})
	return count, err
}

// revocations signs the list of what is revoked.
func (a *Authority) revocations(list []Issued) ([]byte, error) {
	now := a.now()
	template := &x509.RevocationList{
		Number: big.NewInt(now.UnixNano()), ThisUpdate: now.Add(-clockSlack), NextUpdate: a.certificate.NotAfter,
	}
	for _, one := range list {
		if one.Revoked == nil {
			continue
		}
		serial, valid := new(big.Int).SetString(one.Serial, 16)
		if !valid {
			return nil, fmt.Errorf("%s: %q is no serial number", filepath.Join(a.directory, issuedFile), one.Serial)
		}
		entry := x509.RevocationListEntry{SerialNumber: serial, RevocationTime: *one.Revoked}
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries, entry)
	}
	der, err := x509.CreateRevocationList(rand.Reader, template, a.certificate, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing what is revoked: %w", err)
	}
	return encodePEM("X509 CRL", der), nil
}

// change changes what is recorded as issued, without what has expired. Nobody else does at the same time.
func (a *Authority) change(how func([]Issued) ([]Issued, error)) error {
	release, err := lock(a.directory)
	if err != nil {
		return err
	}
	defer release()
	return a.record(how)
}

// record is change of one who has the lock.
func (a *Authority) record(how func([]Issued) ([]Issued, error)) error {
	path := filepath.Join(a.directory, issuedFile)
	var list []Issued
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading what was issued, in %s: %w", path, err)
	}
	now := a.now()
	list = slices.DeleteFunc(list, func(one Issued) bool { return one.Expires.Before(now) })
	if list, err = how(list); err != nil {
		return err
	}
	changed, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("recording what was issued: %w", err)
	}
	if changed = append(changed, '\n'); bytes.Equal(changed, text) {
		return nil
	}
	return atomicfile.Write(path, changed)
}

// How long a command waits for another one that works with the authority, and how often it looks. The work of one takes moments.
const (
	lockPatience = 10 * time.Second
	lockLook     = 10 * time.Millisecond
)

// lock makes the authority in a directory this caller's alone, and waits for others that have it, for at most lockPatience.
func lock(directory string) (release func(), err error) {
	file, err := os.OpenFile(filepath.Join(directory, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the authority: %w", err)
	}
	look := time.NewTicker(lockLook)
	defer look.Stop()
	since := time.Now()
	for err = flock.Take(file); errors.Is(err, flock.ErrHeld) && time.Since(since) < lockPatience; err = flock.Take(file) {
		<-look.C
	}
	if errors.Is(err, flock.ErrHeld) {
		return nil, errors.Join(fmt.Errorf("another command has worked with the authority in %s for %s: %w; see what it is with `fuser %s`",
			directory, lockPatience, err, file.Name()), file.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the authority in %s: %w", directory, err), file.Close())
	}
	return func() { _ = flock.Release(file) }, nil // closing it is all that is left to do
}

func serialNumber() *big.Int {
	number := make([]byte, 16)
	_, _ = rand.Read(number) // never fails
	number[0] = number[0]&0x7f | 0x40
	return new(big.Int).SetBytes(number)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return encodePEM("PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func readCertificate(path string) (*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s has no certificate in PEM", path)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate in %s: %w", path, err)
	}
	return certificate, nil
}

package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// identity is by what server and clients know each other.
type identity struct {
	token            string
	certificate, key []byte // PEM; the certificate is its own authority
}

const (
	tokenBytes          = 32
	certificateLifetime = 10 * 365 * 24 * time.Hour
	certificateReserve  = 365 * 24 * time.Hour // a certificate with less left is replaced at the start
)

// identity returns that of the last time, with new parts for those that are missing, torn, or no longer good.
func (d *directory) identity(address *net.TCPAddr) (*identity, error) {
	token, err := d.token()
	if err != nil {
		return nil, err
	}
	hosts, err := hostsOf(address.IP)
	if err != nil {
		return nil, err
	}
	i := &identity{token: token}
	if i.certificate, err = d.readIfThere("certificate.pem"); err != nil {
		return nil, err
	}
	if i.key, err = d.readIfThere("key.pem"); err != nil {
		return nil, err
	}
	if goodFor(i.certificate, i.key, hosts, time.Now()) {
		return i, nil
	}
	if i.certificate, i.key, err = newCertificate(hosts, time.Now()); err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	return i, errors.Join(d.write("key.pem", i.key, replaced), d.write("certificate.pem", i.certificate, replaced))
}

func (d *directory) token() (string, error) {
	text, err := d.readIfThere("token")
	if err != nil {
		return "", err
	}
	if token := strings.TrimSpace(string(text)); len(token) == hex.EncodedLen(tokenBytes) {
		return token, nil
	}
	random := make([]byte, tokenBytes)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("making a token: %w", err)
	}
	token := hex.EncodeToString(random)
	return token, d.write("token", []byte(token+"\n"), replaced)
}

func (d *directory) readIfThere(name string) ([]byte, error) {
	text, err := os.ReadFile(d.file(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading what the API server is known by: %w", err)
	}
	return text, nil
}

// resolve returns the address to listen on, and refuses one that other machines can reach unless that is allowed.
func resolve(listen string, allowRemote bool) (*net.TCPAddr, error) {
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("the address %q to listen on: %w: give host:port, such as 127.0.0.1:0", listen, err)
	}
	if host != "" && host != "localhost" && net.ParseIP(host) == nil {
		return nil, fmt.Errorf("the address %q to listen on: give the host as an IP address or localhost", listen)
	}
	address, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("the address %q to listen on: %w", listen, err)
	}
	if address.IP == nil {
		address.IP = net.IPv6unspecified
	}
	if !address.IP.IsLoopback() && !allowRemote {
		return nil, fmt.Errorf("%w: %s: listen on a loopback address such as 127.0.0.1:0, or allow it", ErrRemote, listen)
	}
	return address, nil
}

// hostsOf returns by what names the server can be reached that listens on the address.
func hostsOf(listen net.IP) ([]string, error) {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if !listen.IsUnspecified() {
		return append(hosts, listen.String()), nil
	}
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this machine in the certificate: %w", err)
	}
	hosts = append(hosts, name)
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("naming this machine's addresses in the certificate: %w", err)
	}
	for _, address := range addresses {
		if network, is := address.(*net.IPNet); is {
			hosts = append(hosts, network.IP.String())
		}
	}
	return hosts, nil
}

func goodFor(certificate, key []byte, hosts []string, now time.Time) bool {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil || pair.Leaf == nil {
		return false
	}
	for _, host := range hosts {
		if pair.Leaf.VerifyHostname(host) != nil {
			return false
		}
	}
	return now.After(pair.Leaf.NotBefore) && now.Before(pair.Leaf.NotAfter.Add(-certificateReserve))
}

func newCertificate(hosts []string, now time.Time) (certificate, key []byte, err error) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "restripe API server"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certificateLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		return nil, nil, err
	}
	plain, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		return nil, nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: plain})
	return certificate, key, nil
}

// clientConfig is for clients on this machine.
func (i *identity) clientConfig(address *net.TCPAddr) *rest.Config {
	reached := *address
	if reached.IP.IsUnspecified() {
		reached.IP = net.IPv4(127, 0, 0, 1)
	}
	return &rest.Config{
		Host:            "https://" + reached.String(),
		BearerToken:     i.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: i.certificate},
		QPS:             -1, // the server is on this machine and for few clients
	}
}

// saveKubeconfig writes the configuration as kubectl reads it, with everything in the one file.
func (d *directory) saveKubeconfig(config *rest.Config) error {
	const name = "restripe"
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return d.write("kubeconfig", text, replaced)
}

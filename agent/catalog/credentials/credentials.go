// Package credentials reads the files that the address of a catalog may name: whom to believe, the certificate of this side, and a
// password.
package credentials

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Parameters are those of an address that name a file.
var Parameters = []string{"cacert", "cert", "key", "passwordfile"}

// TLS returns what TLS is done with, by the files of the parameters cacert, cert and key. The certificate of this side is read whenever
// it is shown, for it may have been renewed.
func TLS(files map[string]string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if path := files["cacert"]; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading cacert=: %w", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("reading cacert=: no certificate is in %s", path)
		}
	}
	if files["cert"] == "" && files["key"] == "" {
		return config, nil
	}
	show := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(files["cert"], files["key"])
		if err != nil {
			return nil, fmt.Errorf("reading cert= and key=: %w", err)
		}
		return &pair, nil
	}
	config.GetClientCertificate = show
	_, err := show(nil)
	return config, err
}

// NeedTLS refuses files that are of no use without TLS.
func NeedTLS(files map[string]string, scheme string) error {
	if files["cacert"] != "" || files["cert"] != "" || files["key"] != "" {
		return fmt.Errorf("cacert=, cert= and key= go with %s://", scheme)
	}
	return nil
}

// Password returns what stands in the address, or in the file of the parameter passwordfile, without the end of its line.
func Password(files map[string]string, written string, isWritten bool) (string, error) {
	path := files["passwordfile"]
	switch {
	case path == "":
		return written, nil
	case isWritten:
		return "", errors.New("there is a password beside passwordfile=")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading passwordfile=: %w", err)
	}
	return string(bytes.TrimRight(text, "\r\n")), nil
}

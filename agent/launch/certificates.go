package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/pki"
)

// AdminName names the certificate of the person who runs the cluster. The two others are made where the gateway asks who its clients
// are, for an operator and a console.
const (
	AdminName    = "admin"
	OperatorName = "operator"
	ConsoleName  = "console"
)

// Certificates are renewed once they expire within renewBefore, which is looked at every renewEvery.
const (
	renewBefore = 30 * 24 * time.Hour
	renewEvery  = time.Hour
)

// Certificate returns the directory of the certificate of an agent, of the gateway or of what the names above name.
func (c *Cluster) Certificate(name string) string { return CertificateIn(c.options.Directory, name) }

// CertificateIn is Cluster.Certificate for the cluster of a state directory.
func CertificateIn(directory, name string) string { return filepath.Join(directory, "pki", name) }

// gatewayHosts returns under which names clients reach a gateway that serves them over TLS.
func (c *Cluster) gatewayHosts() []string {
	if c.options.Users == "" {
		return nil
	}
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if host, _, err := net.SplitHostPort(c.options.Listen); err == nil && host != "" {
		if ip := net.ParseIP(host); (ip == nil || !ip.IsUnspecified()) && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// certify makes the authority of the cluster and certificates for all its parts, as far as they are not there, and renews those
// that expire soon.
func (c *Cluster) certify() error {
	directory := c.path("pki", "ca")
	authority, err := pki.Open(directory)
	if errors.Is(err, os.ErrNotExist) {
		authority, err = pki.Create(directory, "restripe-"+strings.ToLower(rand.Text()[:8]))
	}
	if err != nil {
		return fmt.Errorf("certificates of the cluster: %w", err)
	}
	parts := map[string]pki.Role{GatewayName: pki.RoleGateway, AdminName: pki.RoleAdmin}
	for _, member := range c.members {
		parts[member.ID] = pki.RoleAgent
	}
	if c.options.Users != "" {
		parts[OperatorName], parts[ConsoleName] = pki.RoleOperator, pki.RoleConsole
	}
	for name, role := range parts {
		var hosts []string
		if name == GatewayName {
			hosts = c.gatewayHosts()
		}
		own, err := pki.Load(c.Certificate(name))
		unnamed := func(host string) bool { return !own.Reached(host) }
		switch {
		case errors.Is(err, os.ErrNotExist), err == nil && slices.ContainsFunc(hosts, unnamed):
			_, err = authority.Issue(pki.Identity{Role: role, Name: name}, hosts, 0, c.Certificate(name))
		case err == nil && time.Until(own.Expires()) < renewBefore:
			_, err = authority.Renew(c.Certificate(name), 0)
		}
		if err != nil {
			return fmt.Errorf("the certificate of %s: %w", name, err)
		}
	}
	return nil
}

// certificateFlags are the arguments that give a process its certificate.
func (c *Cluster) certificateFlags(name string) []string {
	if c.options.Plain {
		return nil
	}
	return []string{"--tls", c.Certificate(name)}
}

// renew renews certificates until ctx ends.
func (c *Cluster) renew(ctx context.Context) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := c.certify(); err != nil {
				c.options.Logger.Warn("renewing certificates", "cause", err)
			}
		}
	}
}

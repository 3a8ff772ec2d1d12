package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/pki"
)

// AdminName names the certificate of the person who runs the cluster.
const AdminName = "admin"

// Certificates are renewed once they expire within renewBefore, which is looked at every renewEvery.
const (
	renewBefore = 30 * 24 * time.Hour
	renewEvery  = time.Hour
)

// Certificate returns the directory of the certificate of an agent, of the gateway or, named AdminName, of a person.
func (c *Cluster) Certificate(name string) string { return c.path("pki", name) }

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
	for name, role := range parts {
		own, err := pki.Load(c.Certificate(name))
		switch {
		case errors.Is(err, os.ErrNotExist):
			_, err = authority.Issue(pki.Identity{Role: role, Name: name}, nil, 0, c.Certificate(name))
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
				c.options.Logger.Warn("renewing certificates", "error", err)
			}
		}
	}
}

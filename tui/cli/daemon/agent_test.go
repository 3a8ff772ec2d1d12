package daemon

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/store/mem"
)

// An agent answers itself while it serves, with certificates and without, and not once it has ended.
func TestAgentsAnswerThemselves(t *testing.T) {
	directory := t.TempDir()
	authority, err := pki.Create(filepath.Join(directory, "ca"), "blue")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Issue(pki.Identity{Role: pki.RoleAgent, Name: "n1"}, nil, time.Hour, filepath.Join(directory, "tls")); err != nil {
		t.Fatal(err)
	}
	own, err := pki.Load(filepath.Join(directory, "tls"))
	if err != nil {
		t.Fatal(err)
	}
	for _, certificates := range []*pki.Source{nil, own} {
		n, err := node.New(node.Options{ID: "n1", Store: mem.New(0), Certificates: certificates})
		if err != nil {
			t.Fatal(err)
		}
		serving, cancel := context.WithCancel(t.Context())
		defer cancel()
		address, ended, err := node.ListenAndServe(serving, "127.0.0.1:0", n, false)
		if err != nil {
			t.Fatal(err)
		}
		f := &agentFlags{id: "n1", own: certificates}
		if err := answers(t.Context(), address.String(), f); err != nil {
			t.Errorf("while it serves: %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := answers(t.Context(), address.String(), f); err == nil {
			t.Error("it answers after it has ended")
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

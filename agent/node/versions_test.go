package node_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/wire"
)

func TestGatewaysOfFarReleasesAreRefused(t *testing.T) {
	a, _ := attached(t, node.Options{Release: "v0.1.0"})
	for name, versions := range map[string]wire.Versions{
		"of this release": wire.Understood, "of one that did not say": {},
		"of the next": {Least: wire.Understood.Most, Most: wire.Understood.Most + 1},
	} {
		var hello wire.HelloReply
		if err := a.call(wire.OpHello, wire.HelloRequest{Versions: versions}, nil, &hello); err != nil {
			t.Errorf("a gateway %s: %v", name, err)
		}
		if hello.Versions != wire.Understood || hello.Release != "v0.1.0" {
			t.Errorf("a gateway %s is told %+v of release %q", name, hello.Versions, hello.Release)
		}
	}
	far := wire.Versions{Least: wire.Understood.Most + 1, Most: wire.Understood.Most + 2}
	err := a.call(wire.OpHello, wire.HelloRequest{Versions: far}, nil, nil)
	if !errors.Is(err, wire.ErrBadRequest) || !strings.Contains(err.Error(), "upgrade the older one") {
		t.Errorf("a gateway of a later release that speaks no version of this one: %v", err)
	}
}

package launch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/store/open"
)

func pools(names ...string) *Ceph {
	c := &Ceph{Config: "/etc/ceph/ceph.conf"}
	for _, name := range names {
		c.Pools = append(c.Pools, CephPool{Name: name, Domain: "rack of " + name})
	}
	return c
}

func TestPoolsStayTheNodesTheyWereWhateverTheOrderTheyAreGivenIn(t *testing.T) {
	directory := t.TempDir()
	options := Options{Directory: directory, Binary: "restripe", Store: StoreCeph, Ceph: pools("b", "a", "c")}
	if err := options.complete(); err != nil || options.Agents != 3 {
		t.Fatalf("%d agents over three pools, %v", options.Agents, err)
	}
	first, _, err := loadShape(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.save(directory); err != nil {
		t.Fatal(err)
	}
	options.Ceph = pools("a", "c", "b")
	if _, _, err := loadShape(options); err != nil || fmt.Sprint(options.Ceph.names()) != "[b a c]" || options.Ceph.Pools[0].Domain != "rack of b" {
		t.Errorf("given in another order: %v, %v", options.Ceph.Pools, err)
	}
	options.Ceph = pools("a", "b", "d")
	if _, _, err := loadShape(options); !errors.Is(err, ErrOtherShape) || !strings.Contains(err.Error(), "b, a, c") || !strings.Contains(err.Error(), "a, b, d") {
		t.Errorf("given other pools: %v, want %v with both", err, ErrOtherShape)
	}
}

func TestAClusterOverCephNeedsPools(t *testing.T) {
	for says, ceph := range map[string]*Ceph{"restripe ceph init": nil, "no pools": {}, "given twice": pools("a", "b", "a")} {
		_, err := Start(t.Context(), Options{Directory: t.TempDir(), Binary: "restripe", Store: StoreCeph, Ceph: ceph})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, does not say %q", ceph, err, says)
		}
	}
}

func TestTheAddressOfAPoolIsOneThatOpens(t *testing.T) {
	c := &Ceph{Config: "a b/ceph.conf", Keyring: "key&ring", User: "me", Pools: []CephPool{{Name: "po?ol"}}}
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(c.Config) || !filepath.IsAbs(c.Keyring) {
		t.Errorf("agents run elsewhere, and are given %q and %q", c.Config, c.Keyring)
	}
	address := c.address("po?ol")
	if !strings.HasPrefix(address, "ceph:po%3Fol?") || strings.Contains(address, " ") {
		t.Errorf("the address is %q", address)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open.Open(ctx, address); err == nil || errors.Is(err, open.ErrAddress) {
		t.Errorf("opening %q: %v", address, err)
	}
}

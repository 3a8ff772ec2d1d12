package gateway_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/kernel"
)

// scrubbed runs a cycle to its end.
func (c *cluster) scrubbed(request api.ScrubRequest) api.Scrub {
	c.t.Helper()
	started, err := c.gateway.StartScrub(c.t.Context(), request)
	if err != nil {
		c.t.Fatalf("starting a scrub: %v", err)
	}
	return c.scrubEnded(started.Cycle)
}

func (c *cluster) scrubEnded(cycle int64) (scrub api.Scrub) {
	c.t.Helper()
	c.await("the scrub ends", func() bool {
		var err error
		if scrub, err = c.gateway.Scrub(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
		return scrub.Cycle == cycle && scrub.State == api.ScrubDone
	})
	return scrub
}

func (c *cluster) findings() []api.ScrubFinding {
	c.t.Helper()
	findings, err := c.gateway.ScrubFindings(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return findings
}

// forge changes bytes of a slot's block and makes its header agree with them: every checksum and fingerprint is right, and
// the bytes are not those that were written. The record is made to agree too, as if the block had been written so.
func (c *cluster) forge(key string, slot int) {
	c.t.Helper()
	view, err := c.catalog.Group(c.t.Context(), c.stat(key).Groups[0].ID)
	if err != nil {
		c.t.Fatal(err)
	}
	item := view.Slots[slot][0]
	address := view.Address(slot, item)
	printer := kernel.NewFingerprinter(c.catalog.Cluster().FingerprintKey)
	var forged *block.Header
	if !c.agent(address.Node).store.Damage(address.Key(), func(value []byte) []byte {
		header, err := block.DecodeHeader(value)
		if err != nil {
			c.t.Fatal(err)
		}
		head, err := block.HeadBytes(value)
		if err != nil {
			c.t.Fatal(err)
		}
		payload := bytes.Clone(value[head:])
		payload[3+slot] ^= byte(0x41 + slot) // in the first unit; errors of several slots do not depend on each other
		length := header.UnitBytes
		if header.Lengths != nil {
			length = header.Lengths[0]
		}
		sum := kernel.Checksum(payload[:length])
		header.Checksums[0] = kernel.ExtendChecksum(sum, header.UnitBytes-length)
		header.Fingerprints[0] = printer.Extend(printer.Sum(payload[:length]), length, header.UnitBytes)
		encoded, err := block.Encode(header, payload)
		if err != nil {
			c.t.Fatal(err)
		}
		forged = header
		return encoded
	}) {
		c.t.Fatalf("%s is not stored on %s", address.Key(), address.Node)
	}
	name := "g/" + view.ID.String()
	raw, err := c.engine.Read(c.t.Context(), name)
	if err != nil {
		c.t.Fatal(err)
	}
	edited := bytes.Replace(raw[0], checksumBytes(item.Checksum), checksumBytes(forged.ContentChecksum()), 1)
	if _, err := c.engine.Update(c.t.Context(), nil, []kv.Write{{Key: name, Value: edited}}); err != nil {
		c.t.Fatal(err)
	}
}

// checksumBytes is the deterministic encoding of an item's checksum: its key, and a number of four bytes.
func checksumBytes(sum uint32) []byte {
	return []byte{0x07, 0x1a, byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}
}

func TestScrubOfWhatIsRight(t *testing.T) {
	c := newCluster(t, 9)
	c.put("large", noise(150_000, 1), api.PutOptions{})
	c.put("small", noise(500, 2), api.PutOptions{})
	c.put("odd/one", noise(90_000, 3), api.PutOptions{})
	c.put("tmp/one", noise(10_000, 4), api.PutOptions{})
	for _, depth := range []api.ScrubDepth{api.ScrubAudit, api.ScrubShallow} {
		scrub := c.scrubbed(api.ScrubRequest{Depth: depth})
		if scrub.Findings != 0 || scrub.GroupsIncomplete != 0 || scrub.GroupsDone != scrub.GroupsTotal || scrub.GroupsDone < 5 || scrub.BytesDone != scrub.BytesTotal || scrub.NetworkBytes == 0 || scrub.Error != "" {
			t.Errorf("%s: %+v", depth, scrub)
		}
	}
	if findings := c.findings(); len(findings) != 0 {
		t.Errorf("findings in what is right: %+v", findings)
	}
}

// TestScrubRepairsDamage: wrong bytes, a missing block and a block that is another than the record says are found, named with
// their objects, and repaired.
func TestScrubRepairsDamage(t *testing.T) {
	c := newCluster(t, 9)
	want := map[string][]byte{"a": noise(60_000, 1), "b": noise(60_000, 2), "c": noise(60_000, 3)}
	for key, data := range want {
		c.put(key, data, api.PutOptions{Scheme: "rs(3,2)"})
	}
	c.damage("a", 2)
	c.damage("b", 7) // a parity row
	view, err := c.catalog.Group(t.Context(), c.stat("c").Groups[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	address := view.Address(1, view.Slots[1][0])
	if err := c.agent(address.Node).store.Delete(t.Context(), address.Key()); err != nil {
		t.Fatal(err)
	}
	scrub := c.scrubbed(api.ScrubRequest{})
	if scrub.Findings != 3 || scrub.Repaired != 3 {
		t.Fatalf("%+v; findings %+v", scrub, c.findings())
	}
	kinds := map[string]api.ScrubFinding{}
	for _, finding := range c.findings() {
		kinds[finding.Kind+string(rune('0'+finding.Slot))] = finding
	}
	if f := kinds["damaged2"]; !slices.Equal(f.Objects, []string{"a"}) || f.Unit < 0 || !f.Repaired {
		t.Errorf("damage of a cell: %+v", f)
	}
	if f := kinds["damaged7"]; len(f.Objects) != 0 || !f.Repaired {
		t.Errorf("damage of a parity: %+v", f)
	}
	if f := kinds["missing1"]; !slices.Equal(f.Objects, []string{"c"}) || f.Node != address.Node || !f.Repaired {
		t.Errorf("missing block: %+v", f)
	}
	if again := c.scrubbed(api.ScrubRequest{}); again.Findings != 0 {
		t.Errorf("after the repair: %+v", again)
	}
	for key, data := range want {
		c.check(key, data)
	}
	c.audit()
}

// TestScrubLocatesWrongBlocks: bytes that match every checksum and are wrong all the same are found by the parity
// equations and rebuilt from the others.
func TestScrubLocatesWrongBlocks(t *testing.T) {
	for _, slot := range []int{0, 4, 6} { // data columns and a parity row
		for _, depth := range []api.ScrubDepth{api.ScrubAudit, api.ScrubShallow} {
			c := newCluster(t, 9)
			data := noise(60_000, 5)
			c.put("k", data, api.PutOptions{Scheme: "rs(3,2)"})
			c.forge("k", slot)
			scrub := c.scrubbed(api.ScrubRequest{Depth: depth})
			findings := c.findings()
			if scrub.Findings != 1 || scrub.Repaired != 1 || len(findings) != 1 || findings[0].Kind != api.FindingParity || findings[0].Slot != slot || findings[0].Unit != 0 {
				t.Fatalf("slot %d: %+v; findings %+v", slot, scrub, findings)
			}
			if names := findings[0].Objects; slot < 6 && !slices.Equal(names, []string{"k"}) || slot >= 6 && len(names) > 0 {
				t.Errorf("slot %d: objects %v", slot, names)
			}
			if again := c.scrubbed(api.ScrubRequest{}); again.Findings != 0 {
				t.Errorf("slot %d: after the repair: %+v", slot, again)
			}
			c.check("k", data)
			c.audit()
		}
	}
}

// TestScrubWithoutEnoughParity: with two blocks of a stripe wrong and two parities it is only known that something is.
func TestScrubWithoutEnoughParity(t *testing.T) {
	c := newCluster(t, 9)
	c.put("k", noise(60_000, 6), api.PutOptions{Scheme: "rs(6,2)"})
	c.forge("k", 0)
	c.forge("k", 1)
	scrub := c.scrubbed(api.ScrubRequest{})
	findings := c.findings()
	if scrub.Findings != 1 || scrub.Repaired != 0 || len(findings) != 1 || findings[0].Slot != -1 || findings[0].Outcome == "" || !slices.Equal(findings[0].Objects, []string{"k"}) {
		t.Fatalf("%+v; findings %+v", scrub, findings)
	}
	found, err := c.gateway.Doctor(t.Context())
	if err != nil || !slices.ContainsFunc(found, func(f api.Finding) bool { return f.Subject == "scrub" && f.Severity == "error" }) {
		t.Errorf("the doctor does not speak of it: %+v, %v", found, err)
	}
}

// TestScrubPausesAndGoesOn: a paused scrub stays paused over a restart, a running one goes on at its cursor after a kill,
// and another gateway takes over the record when it is started there.
func TestScrubPausesAndGoesOn(t *testing.T) {
	c := newCluster(t, 9)
	for i := range 12 {
		c.put(string(rune('a'+i)), noise(40_000, uint64(i)), api.PutOptions{})
	}
	started, err := c.gateway.StartScrub(t.Context(), api.ScrubRequest{BytesPerSecond: 400_000})
	if err != nil {
		t.Fatal(err)
	}
	c.await("some groups are done", func() bool {
		scrub, err := c.gateway.Scrub(t.Context())
		return err == nil && scrub.GroupsDone >= 4 && scrub.ETASeconds > 0
	})
	paused, err := c.gateway.PauseScrub(t.Context())
	if err != nil || paused.State != api.ScrubPaused || paused.GroupsDone < 4 || paused.GroupsDone >= 12 {
		t.Fatalf("paused: %+v, %v", paused, err)
	}
	c.stopGateway()
	c.startGateway()
	if scrub, err := c.gateway.Scrub(t.Context()); err != nil || scrub.State != api.ScrubPaused || scrub.GroupsDone != paused.GroupsDone {
		t.Fatalf("after a restart: %+v, %v", scrub, err)
	}
	if scrub, err := c.gateway.ResumeScrub(t.Context()); err != nil || scrub.State != api.ScrubRunning {
		t.Fatalf("resumed: %+v, %v", scrub, err)
	}
	c.await("a group more is done", func() bool {
		scrub, err := c.gateway.Scrub(t.Context())
		return err == nil && scrub.GroupsDone > paused.GroupsDone
	})
	c.stopGateway() // it saves and leaves the record running
	c.startGateway()
	scrub := c.scrubEnded(started.Cycle)
	if scrub.GroupsDone != 12 || scrub.GroupsTotal != 12 || scrub.Findings != 0 {
		t.Fatalf("%+v", scrub)
	}
	other := c.newGateway("other")
	if scrub, err := other.StartScrub(t.Context(), api.ScrubRequest{}); err != nil || scrub.Cycle != 2 {
		t.Fatalf("started at another gateway: %+v, %v", scrub, err)
	}
	if scrub := c.scrubEnded(2); scrub.Owner[:5] != "other" {
		t.Fatalf("%+v", scrub)
	}
}

// TestScrubBeginsByItself: a cluster whose last cycle is long ago gets another one, which several gateways do once.
func TestScrubBeginsByItself(t *testing.T) {
	c := newCluster(t, 9)
	c.put("k", noise(40_000, 1), api.PutOptions{})
	often := func(options *gateway.Options) { options.ScrubEvery = 100 * time.Millisecond }
	c.newGateway("first", often)
	c.newGateway("second", often)
	c.await("two cycles have begun by themselves", func() bool {
		scrub, err := c.gateway.Scrub(context.Background())
		return err == nil && scrub.Cycle >= 2 && scrub.Background && scrub.BytesPerSecond > 0
	})
}

// TestScrubIsPausedBeforeThereWasOne: pausing keeps the first cycle from beginning, and resuming lets it.
func TestScrubIsPausedBeforeThereWasOne(t *testing.T) {
	c := newCluster(t, 9)
	for _, step := range []struct {
		act  func(context.Context) (api.Scrub, error)
		want api.ScrubState
	}{{c.gateway.Scrub, api.ScrubNever}, {c.gateway.PauseScrub, api.ScrubPaused}, {c.gateway.ResumeScrub, api.ScrubNever}, {c.gateway.ResumeScrub, api.ScrubNever}} {
		if scrub, err := step.act(t.Context()); err != nil || scrub.State != step.want {
			t.Errorf("%+v, %v; want %s", scrub, err, step.want)
		}
	}
}

func TestScrubRefusals(t *testing.T) {
	c := newCluster(t, 9)
	for _, request := range []api.ScrubRequest{{Depth: "deep"}, {BytesPerSecond: -1}} {
		if _, err := c.gateway.StartScrub(t.Context(), request); err == nil {
			t.Errorf("%+v is taken", request)
		}
	}
}

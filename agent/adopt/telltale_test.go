package adopt

import (
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/store/ceph/pools"
)

func TestPoolsOfOtherProgramsAreRefused(t *testing.T) {
	tagged := func(tag string) *pools.Pool {
		return &pools.Pool{Name: "p", Applications: map[string]map[string]string{tag: {}}}
	}
	for _, tag := range []string{"rbd", "cephfs", "rgw", "mgr", "mgr_devicehealth", "restripe"} {
		if err := CheckPool(tagged(tag)); err == nil || !strings.Contains(err.Error(), "application tag is "+tag) {
			t.Errorf("%s: %v", tag, err)
		}
	}
	if err := CheckPool(&pools.Pool{Name: "p", Tier: true}); err == nil {
		t.Error("a cache tier was taken")
	}
	for _, pool := range []*pools.Pool{{Name: "p"}, tagged("archive")} {
		if err := CheckPool(pool); err != nil {
			t.Error(err)
		}
	}
}

func TestNamesThatTellTheProgram(t *testing.T) {
	for name, want := range map[string][2]string{
		"rbd_directory":                       {"rbd", ""},
		"rbd_header.10226b8b4567":             {"rbd", ""},
		"rbd_data.10226b8b4567.0000000000001": {"rbd", ""},
		"rb.0.1234.6b8b4567.000000000000":     {"rbd", ""},
		"mds0_inotable":                       {"cephfs", ""},
		"mds_snaptable":                       {"cephfs", ""},
		"10000000001.00000000":                {"cephfs", "parent"},
		".dir.5ab4.4137.1":                    {"rgw", ""},
		"zone_info.1234":                      {"rgw", ""},
		"5ab4.4137.1_photo.jpg":               {"rgw", "user.rgw.idtag"},
		"photo.jpg":                           {},
		"rbd":                                 {},
		"my rbd_data.txt":                     {"rgw", "user.rgw.idtag"},
		"2026-11.00000000":                    {},
	} {
		application, confirm := applicationByName(name)
		if got := [2]string{application, confirm}; got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

func TestAttributesAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		intent string
		names  []string
		omap   bool
		drop   attributes
		want   string // part of the reason; "" is carried
	}{
		{"nothing to lose", nil, false, attributes{}, ""},
		{"xattrs", []string{"owner", "colour"}, false, attributes{}, "xattrs colour, owner"},
		{"xattrs left out", []string{"owner"}, false, attributes{dropXattrs: true}, ""},
		{"an omap", nil, true, attributes{dropXattrs: true}, "omap"},
		{"an omap left out", nil, true, attributes{dropOmap: true}, ""},
		{"S3, whatever is left out", []string{"user.rgw.etag"}, false, attributes{true, true}, "S3 gateway"},
		{"a stripe, whatever is left out", []string{"striper.size"}, false, attributes{true, true}, "libradosstriper"},
		{"half an export", []string{unfinishedMark}, false, attributes{true, true}, "export"},
	} {
		err := c.drop.check(c.names, c.omap)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.intent, err, c.want)
		}
	}
}

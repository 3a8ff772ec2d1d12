package adopt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/store/ceph/pools"
)

// applicationsOf other programs, with what they keep in their pools and the way out.
var applicationsOf = map[string]string{
	"rbd": "images of block devices (RBD), whose objects are stripes of an image and mean nothing alone; " +
		"copy the images with `rbd export` and store the files",
	"cephfs":           "files of CephFS, whose names and sizes are in its metadata pool; mount it and store the files with `restripe put`",
	"rgw":              "objects of the S3 gateway (RGW), whose names, parts and versions are in its index pools; copy them through S3",
	"mgr":              "data of Ceph's managers",
	"mgr_devicehealth": "data of Ceph's managers",
	pools.Application:  "blocks of Restripe: its objects are under a policy already",
}

// CheckPool says why a pool cannot be adopted as a whole, judging by its description; nil if nothing speaks against it.
func CheckPool(pool *pools.Pool) error {
	var tags []string
	for tag := range pool.Applications {
		tags = append(tags, tag)
	}
	slices.Sort(tags)
	for _, tag := range tags {
		if what, known := applicationsOf[tag]; known {
			return fmt.Errorf("the pool %s is not adopted: its application tag is %s, it holds %s", pool.Name, tag, what)
		}
	}
	if pool.Tier {
		return fmt.Errorf("the pool %s is not adopted: it is a cache of another pool, or has one, and objects may be in either; remove the tier first (ceph osd tier)", pool.Name)
	}
	return nil
}

// telltale is a name that only one application gives.
type telltale struct {
	application string
	pattern     *regexp.Regexp

	// confirm is an attribute which an object of such a name has if it is the application's; "" where the name says enough.
	confirm string
}

var telltales = []telltale{
	{"rbd", regexp.MustCompile(`^(rbd_directory|rbd_info|rbd_children|rbd_trash|rbd_mirroring)$|^rbd_(id|header|data|object_map)\..`), ""},
	{"rbd", regexp.MustCompile(`^rb\.0\.[0-9a-f]+\.[0-9a-f]+\.[0-9a-f]{12}$`), ""},
	{"cephfs", regexp.MustCompile(`^mds(_snaptable|[0-9]+_(inotable|sessionmap|openfiles\.[0-9]+))$`), ""},
	{"cephfs", regexp.MustCompile(`^[0-9a-f]{1,16}\.[0-9a-f]{8}$`), "parent"},
	{"rgw", regexp.MustCompile(`^\.dir\..|^\.bucket\.meta\.|^(zone_info|zonegroup_info|realms|period_config)\.`), ""},
	{"rgw", regexp.MustCompile(`_`), "user.rgw.idtag"},
}

// Attributes that name the program which made an object.
const (
	rgwAttributes     = "user.rgw."
	striperAttributes = "striper."
	unfinishedMark    = "restripe.unfinished" // on an object of an export that did not end
)

// applicationByName returns the application that gave an object its name, and the attribute that has to confirm it.
func applicationByName(name string) (application, confirm string) {
	for _, t := range telltales {
		if t.pattern.MatchString(name) && t.confirm == "" {
			return t.application, ""
		}
	}
	for _, t := range telltales {
		if t.pattern.MatchString(name) {
			return t.application, t.confirm
		}
	}
	return "", ""
}

// attributes say what to do with what Restripe's objects do not have.
type attributes struct {
	dropXattrs bool
	dropOmap   bool
}

// check returns a *RefusalError where an object has attributes that would be lost.
func (a attributes) check(names []string, hasOmap bool) error {
	slices.Sort(names)
	for _, name := range names {
		switch {
		case name == unfinishedMark:
			return refusal("an export did not end while it wrote it: finish that export, or delete the object")
		case strings.HasPrefix(name, rgwAttributes):
			return refusal("it has the attribute %s: it is %s", name, applicationsOf["rgw"])
		case strings.HasPrefix(name, striperAttributes):
			return refusal("it has the attribute %s: it is a stripe of a larger object of libradosstriper; read that with `rados --striper get` and store it with `restripe put`", name)
		}
	}
	if len(names) > 0 && !a.dropXattrs {
		return refusal("it has the xattrs %s, which Restripe's objects do not have: --drop-xattrs leaves them out", strings.Join(names, ", "))
	}
	if hasOmap && !a.dropOmap {
		return refusal("it has an omap, which Restripe's objects do not have: --drop-omap leaves it out")
	}
	return nil
}

package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/policies"
)

// CephOptions say what profile and pool do not.
type CephOptions struct {
	// Backend is the StorageBackend of the policy.
	Backend string
	// Prefix of the keys that were the pool's; empty: the pool's name and a slash.
	Prefix string
}

// Ceph makes a RedundancyScheme and a RedundancyPolicy of a pool. pool is what `ceph osd pool get NAME all -f json`
// prints, and profile, for an erasure-coded pool, what `ceph osd erasure-code-profile get NAME -f json` prints; for a
// replicated one it is empty. The policy's ladder has the one step: nothing moves until it is given more.
func Ceph(profile, pool []byte, options CephOptions) (*Result, error) {
	settings, err := cephObjects(pool)
	if err != nil {
		return nil, fmt.Errorf("reading the pool: %w; give what `ceph osd pool get NAME all -f json` prints", err)
	}
	name := settings.text("pool")
	if name == "" {
		return nil, fmt.Errorf("reading the pool: it has no name (pool); give what `ceph osd pool get NAME all -f json` prints")
	}
	i := cephImport{Result: &Result{}}
	i.note("From the Ceph pool %s. Data is not moved by this: it is read from Ceph and put under the prefix.", name)
	code, err := i.code(profile, settings)
	if err != nil {
		return nil, err
	}
	i.settings(settings)
	scheme := i.objectName("RedundancyScheme", cmp.Or(settings.text("erasure_code_profile"), name), "imported")
	spec := v1alpha1.RedundancySchemeSpec{}
	if code.Replication() {
		spec.Replicas = number(code.M + 1)
	} else {
		spec.DataChunks, spec.CodingChunks = number(code.K), number(code.M)
	}
	i.Objects = append(i.Objects, policies.Object{
		Kind: "RedundancyScheme", Name: scheme,
		Value: &v1alpha1.RedundancyScheme{ObjectMeta: metav1.ObjectMeta{Name: scheme}, Spec: spec},
	})
	prefix := options.Prefix
	if prefix == "" {
		prefix = name + "/"
	}
	i.policy(i.objectName("RedundancyPolicy", name, "imported"), v1alpha1.RedundancyPolicySpec{
		BackendRef: options.Backend,
		Selector:   v1alpha1.Selector{Prefixes: []string{prefix}},
		Ladder:     []v1alpha1.SchemeName{v1alpha1.SchemeName(scheme)},
	})
	i.note("The ladder has one step, as a pool of Ceph has. Add wider or narrower codes before data is put: `restripe ladders` recommends some.")
	return i.Result, nil
}

type cephImport struct{ *Result }

// cephSettings are values by name; numbers and booleans are texts in some versions of Ceph.
type cephSettings map[string]any

func (s cephSettings) text(name string) string {
	switch value := s[name].(type) {
	case string:
		return value
	case json.Number:
		return value.String()
	case bool:
		return strconv.FormatBool(value)
	}
	return ""
}

// count returns a number of a field, or an error that names it.
func (s cephSettings) count(name string) (int, error) {
	if _, is := s[name]; !is {
		return 0, fmt.Errorf("%s is missing", name)
	}
	n, err := strconv.Atoi(s.text(name))
	if err != nil {
		return 0, fmt.Errorf("%s is %q, not a whole number", name, s.text(name))
	}
	return n, nil
}

// cephObjects reads JSON objects and joins them: older versions of Ceph print one for each setting.
func cephObjects(text []byte) (cephSettings, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	settings := cephSettings{}
	for {
		var object map[string]any
		err := decoder.Decode(&object)
		switch {
		case errors.Is(err, io.EOF) && len(settings) == 0:
			return nil, errors.New("it is empty")
		case errors.Is(err, io.EOF):
			return settings, nil
		case err != nil:
			return nil, syntax(text, err)
		}
		for name, value := range object {
			settings[name] = value
		}
	}
}

// code returns the code of a pool.
func (i *cephImport) code(text []byte, pool cephSettings) (stripe.Scheme, error) {
	size, err := pool.count("size")
	if err != nil {
		return stripe.Scheme{}, fmt.Errorf("reading the pool: %w", err)
	}
	called := pool.text("erasure_code_profile")
	if called == "" && len(bytes.TrimSpace(text)) > 0 {
		return stripe.Scheme{}, fmt.Errorf("the pool is replicated (size %d, no erasure_code_profile), but a profile is given; leave the profile out", size)
	}
	if called == "" {
		return valid(stripe.Replicas(size), fmt.Sprintf("size %d", size))
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return stripe.Scheme{}, fmt.Errorf("the pool has the erasure-code profile %q; give as well what `ceph osd erasure-code-profile get %s -f json` prints", called, called)
	}
	profile, err := cephObjects(text)
	if err != nil {
		return stripe.Scheme{}, fmt.Errorf("reading the erasure-code profile: %w", err)
	}
	code, err := i.profile(profile)
	if err != nil {
		return stripe.Scheme{}, fmt.Errorf("reading the erasure-code profile %s: %w", called, err)
	}
	if size != code.K+code.M {
		return stripe.Scheme{}, fmt.Errorf("the pool has size %d and the profile k + m = %d; give the profile %q, which is the pool's", size, code.K+code.M, called)
	}
	return code, nil
}

func valid(code stripe.Scheme, from string) (stripe.Scheme, error) {
	if err := code.Validate(); err != nil {
		return stripe.Scheme{}, fmt.Errorf("%s cannot be carried over: %w", from, err)
	}
	return code, nil
}

// profile returns the code of an erasure-code profile.
func (i *cephImport) profile(profile cephSettings) (stripe.Scheme, error) {
	k, err := profile.count("k")
	if err != nil {
		return stripe.Scheme{}, err
	}
	m, err := profile.count("m")
	if err != nil {
		return stripe.Scheme{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(profile)) {
		field, value := "erasure-code-profile."+name, profile.text(name)
		switch name {
		case "k", "m", "w", "technique", "packetsize", "jerasure-per-chunk-alignment", "directory", "scalar_mds":
			// How the parity is computed: Restripe has its own matrix, with the same k and m.
		case "plugin":
			switch value {
			case "jerasure", "isa":
			case "clay":
				i.refuse(field, "clay reads less for a repair; rs(%d,%d) survives the same losses, and a repair reads %d chunks", k, m, k)
			default:
				return stripe.Scheme{}, fmt.Errorf("plugin %s is no code with k data and m parity chunks of which any k suffice; choose a code, such as rs(%d,%d), yourself", value, k, m)
			}
		case "crush-failure-domain", "ruleset-failure-domain":
			if value != "osd" {
				i.refuse(field, "%s: domains are declared with the nodes of the StorageBackend; give every node its failureDomain", value)
			}
		case "crush-device-class", "crush-root", "ruleset-root":
			if value != "" && value != "default" {
				i.refuse(field, "%s: which disks are used is said by which nodes the StorageBackend has", value)
			}
		case "crush-num-failure-domains", "crush-osds-per-failure-domain":
			if value != "" && value != "0" {
				i.refuse(field, "%s: a group has at most one column on a node", value)
			}
		case "stripe_unit":
			i.refuse(field, "%s: the size of cells follows from packing.groupBytes", value)
		case "d":
			i.refuse(field, "%s: how many helpers a repair reads is a matter of clay", value)
		default:
			i.refuse(field, "it is not known what this means")
		}
	}
	return valid(stripe.RS(k, m), fmt.Sprintf("k = %d, m = %d", k, m))
}

// settings lists what else a pool is set to that has no counterpart, unless it is what every pool has.
func (i *cephImport) settings(pool cephSettings) {
	for _, name := range slices.Sorted(maps.Keys(pool)) {
		field, value := "pool."+name, pool.text(name)
		switch {
		case strings.HasPrefix(name, "compression_"):
			if name == "compression_mode" && value != "none" && value != "" {
				i.refuse(field, "%s: blocks are stored as they are; compress before", value)
			}
		case strings.HasPrefix(name, "csum_") || strings.HasPrefix(name, "hit_set_") || strings.HasPrefix(name, "cache_") ||
			strings.HasPrefix(name, "pg_") || strings.HasPrefix(name, "scrub_") || strings.HasPrefix(name, "deep_scrub_") || strings.HasPrefix(name, "recovery_"):
			// Of placement groups, scrubbing and cache tiers, which there are none of.
		case name == "min_size":
			size, sizeErr := pool.count("size")
			least, err := pool.count("min_size")
			if err == nil && sizeErr == nil {
				i.refuse(field, "%d of %d: an acknowledged write has all its blocks stored", least, size)
			}
		case name == "crush_rule" || name == "crush_ruleset":
			i.refuse(field, "%s: where blocks lie is said by the nodes and failure domains of the StorageBackend", value)
		case slices.Contains([]string{"nodelete", "nosizechange", "nopgchange", "noscrub", "nodeep-scrub", "bulk", "fast_read", "allow_ec_overwrites", "allow_ec_optimizations", "write_fadvise_dontneed", "eio"}, name):
			if value == "true" || value == "1" {
				i.refuse(field, "%s: there is no such switch", value)
			}
		case strings.HasPrefix(name, "target_") || strings.HasPrefix(name, "quota_"):
			if value != "" && strings.Trim(value, "0.") != "" {
				i.refuse(field, "%s: there are no quotas", value)
			}
		case slices.Contains([]string{"pool", "pool_id", "size", "erasure_code_profile", "hashpspool", "pgp_num", "use_gmt_hitset", "auid",
			"min_write_recency_for_promote", "min_read_recency_for_promote", "crash_replay_interval", "dedup_tier", "dedup_chunk_algorithm", "fingerprint_algorithm"}, name):
		default:
			i.refuse(field, "it is not known what this means")
		}
	}
}

func number(n int) *int32 {
	value := int32(n)
	return &value
}

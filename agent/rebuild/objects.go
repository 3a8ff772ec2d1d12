package rebuild

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// version is one write of an object, as the manifests of one attempt's groups tell it.
type version struct {
	key      string
	put      block.Stamp // the attempt that made its groups
	revision block.Stamp
	size     int64
	class    string
	scheme   string
	extents  []catalog.Extent
	expires  int64
	metadata map[string]string
	checksum uint32
	keep     int    // versions before it that were to be kept
	problem  string // why it is not complete

	durable  bool // its groups have parities
	packed   bool // in a group with others, where it stays when it is overwritten
	whole    bool // nothing of its groups is missing or wrong
	hopeless bool // more is than can be repaired, though it can be read
}

type part struct {
	entry block.ManifestEntry
	group *Group
	named block.GroupID // by its extent: that which the columns were of in which it lies
}

// Objects chooses, for each key, the newest complete version that the groups name, and says what else there was. modified
// is the time that objects are said to have been modified at, in Unix milliseconds. It is pure; objects come by key.
func Objects(groups []Group, modified int64) (objects []catalog.Object, problems []Problem) {
	parts := map[string]map[block.Stamp][]part{}
	for i := range groups {
		g := &groups[i]
		for _, entry := range g.Entries {
			key := string(entry.Key)
			if parts[key] == nil {
				parts[key] = map[block.Stamp][]part{}
			}
			p := part{entry, g, g.Record.ID}
			if entry.Origin != (block.GroupID{}) {
				p.named = entry.Origin
			}
			parts[key][p.named.Stamp] = append(parts[key][p.named.Stamp], p)
		}
	}
	keys := make([]string, 0, len(parts))
	for key := range parts {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	moved := map[string][]version{} // earlier versions that have moved since, by what they are versions of
	for _, key := range keys {
		if of, _, isEarlier := block.OfEarlierKey(key); isEarlier {
			if c := choose(key, parts[key]); c.best != nil {
				moved[of] = append(moved[of], *c.best)
			}
		}
	}
	for _, key := range keys {
		if block.IsEarlierKey(key) {
			continue
		}
		c := choose(key, parts[key])
		problems = append(problems, c.problems...)
		if c.best == nil {
			continue
		}
		object := c.best.object(key)
		object.Modified = modified
		kept, left := c.best.earlier(append(c.older, moved[key]...))
		for i := range kept {
			object.Earlier = append(object.Earlier, kept[i].revision)
			version := kept[i].object(block.EarlierKey(key, kept[i].revision))
			version.Keep, version.Modified = 0, modified
			objects = append(objects, version)
		}
		for _, v := range left {
			text := fmt.Sprintf("revision %s is there too, %d bytes; revision %s, %d bytes, is taken", v.revision, v.size, c.best.revision, c.best.size)
			problems = append(problems, Problem{Kind: ProblemVersions, Key: printable(key), Group: &v.extents[0].Group, Text: text})
		}
		objects = append(objects, object)
	}
	slices.SortFunc(objects, func(a, b catalog.Object) int { return cmp.Compare(a.Key, b.Key) })
	return objects, problems
}

// object is the record of a version under a key.
func (v *version) object(key string) catalog.Object {
	return catalog.Object{
		Key: key, Revision: v.revision, Class: v.class, Scheme: v.scheme, Size: v.size, Extents: v.extents,
		Expires: v.expires, Metadata: v.metadata, Checksum: v.checksum, Keep: v.keep,
	}
}

// earlier chooses among versions those that a version keeps of what it was put over, the last one first, and returns what is left of those
// that have other bytes than it. Whether they were committed nothing says; they are complete, and older.
func (v *version) earlier(versions []version) (kept, left []version) {
	versions = slices.DeleteFunc(versions, func(other version) bool { return other.revision == v.revision }) // the same bytes, moved
	slices.SortStableFunc(versions, func(a, b version) int { return -a.revision.Compare(b.revision) })
	versions = slices.CompactFunc(versions, func(a, b version) bool { return a.revision == b.revision })
	most := v.keep
	if v.keep == block.KeepDurable {
		most = 1
	}
	for i := range versions {
		isOlder := versions[i].revision.Compare(v.revision) < 0
		if isOlder && !versions[i].hopeless && len(kept) < most && (v.keep != block.KeepDurable || versions[i].durable) {
			kept = append(kept, versions[i])
		} else {
			left = append(left, versions[i])
		}
	}
	return kept, left
}

// choice is what is taken of the versions of one key.
type choice struct {
	best     *version  // nil: none
	older    []version // complete as well
	problems []Problem
}

// choose takes the newest complete version of one key.
func choose(key string, puts map[block.Stamp][]part) (c choice) {
	var complete, partial []version
	for put, parts := range puts {
		v := assembleVersion(key, put, parts)
		if v.problem == "" {
			complete = append(complete, v)
		} else {
			partial = append(partial, v)
		}
	}
	newestFirst := func(a, b version) int {
		return -cmp.Or(a.revision.Compare(b.revision), a.put.Compare(b.put))
	}
	slices.SortFunc(complete, newestFirst)
	slices.SortFunc(partial, newestFirst)
	name := printable(key)
	if len(complete) == 0 {
		for _, v := range partial {
			c.problems = append(c.problems, Problem{Kind: ProblemLost, Key: name, Text: fmt.Sprintf("revision %s cannot be read: %s", v.revision, v.problem)})
		}
		return c
	}
	chosen := likeliest(complete)
	best := complete[chosen]
	for _, v := range complete[:chosen] {
		why := fmt.Sprintf("blocks of it are missing and none of revision %s, so it was not committed", best.revision)
		if v.hopeless {
			why = "more blocks of it are missing than can be repaired"
		}
		c.problems = append(c.problems, Problem{Kind: ProblemPartial, Key: name, Text: fmt.Sprintf("revision %s is left out, %s; revision %s is taken", v.revision, why, best.revision)})
	}
	for _, v := range partial {
		if newestFirst(v, best) < 0 { // an older one was being deleted
			c.problems = append(c.problems, Problem{Kind: ProblemPartial, Key: name, Text: fmt.Sprintf("revision %s is left out, %s; revision %s is taken", v.revision, v.problem, best.revision)})
		}
	}
	c.best, c.older = &best, complete[chosen+1:]
	return c
}

// likeliest returns which of the complete versions, newest first, was committed last. Versions that lack more than can be
// repaired count only if there are no others. Of the rest it is the newest, unless blocks of it are missing and the newest that
// is whole would have been deleted if a later one had been committed. What is older than that one says nothing: it was
// overwritten, and its blocks stay for a while all the same.
func likeliest(complete []version) int {
	whole := slices.IndexFunc(complete, func(v version) bool { return v.whole })
	if whole >= 0 && !complete[whole].packed {
		return whole
	}
	return max(0, slices.IndexFunc(complete, func(v version) bool { return !v.hopeless }))
}

// assembleVersion puts the parts of a version in order and sees that none is missing.
func assembleVersion(key string, put block.Stamp, parts []part) version {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.entry.At, b.entry.At), -a.entry.Revision.Compare(b.entry.Revision))
	})
	// Every part says of the whole what all of them do; the last one alone has what was known once all bytes had come.
	first, last := &parts[0], &parts[len(parts)-1]
	v := version{
		key: key, put: put, class: first.group.Record.Class, scheme: first.group.Record.Scheme, whole: true, durable: true,
		expires: first.entry.Expires, metadata: last.entry.Metadata,
	}
	var at, size int64
	for i, p := range parts {
		entry := &p.entry
		v.durable = v.durable && p.group.Parities > 0
		v.whole = v.whole && p.group.Bad == 0
		v.hopeless = v.hopeless || p.group.Bad > p.group.Parities
		if i > 0 && p.named == parts[i-1].named && p.entry.At == parts[i-1].entry.At { // it lies in columns of several groups, which all name it
			continue
		}
		if entry.Revision != first.entry.Revision { // some of the bytes were changed since
			v.metadata = block.WithoutDigests(v.metadata)
		}
		if entry.Revision.Compare(v.revision) > 0 {
			v.revision, v.checksum, v.keep = entry.Revision, entry.Checksum, entry.Keep
		}
		if entry.At != at && v.problem == "" {
			v.problem = fmt.Sprintf("bytes %d to %d are in no group", at, entry.At)
		}
		at = entry.At + entry.Length
		v.packed = v.packed || entry.Column != catalog.WholeGroup
		size = max(size, entry.Size)
		v.extents = append(v.extents, catalog.Extent{Group: p.named, Column: entry.Column, Offset: entry.Offset, Length: entry.Length})
	}
	v.size = at
	switch {
	case v.problem != "" || at == size:
	case size == 0:
		v.problem = fmt.Sprintf("its end is in no group: %d bytes are there, and none of its groups says that it is the last", at)
	case at < size:
		v.problem = fmt.Sprintf("bytes %d to %d are in no group", at, size)
	default:
		v.problem = fmt.Sprintf("its groups have %d bytes and say that it has %d", at, size)
	}
	return v
}

func printable(key string) string {
	if quoted := strconv.Quote(key); quoted != `"`+key+`"` {
		return quoted
	}
	return key
}

// Torn finds the updates of several groups that were not committed: a group that the update was to change, and whose blocks
// are all older, was not changed, though the others were. It is pure.
func Torn(groups []Group) map[block.Stamp]bool {
	byID := map[block.GroupID]*Group{}
	for i := range groups {
		if groups[i].Complete {
			byID[groups[i].Record.ID] = &groups[i]
		}
	}
	torn := map[block.Stamp]bool{}
	for i := range groups {
		for attempt, span := range groups[i].Spans {
			for _, index := range span {
				other := byID[block.GroupID{Stamp: groups[i].Record.ID.Stamp, Index: index}]
				if other == nil {
					continue // nothing is known of it
				}
				newest := other.Attempts[len(other.Attempts)-1]
				if newest.Compare(attempt) < 0 {
					torn[attempt] = true
				}
			}
		}
	}
	return torn
}

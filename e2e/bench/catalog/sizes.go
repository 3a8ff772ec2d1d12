package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/restripe/restripe/operator/words"
)

// smallest is how many objects the first catalog has; grown, by how many times as many one grows to see what a record takes; up to
// wholeBelow what has to have all records in memory is measured too.
const (
	smallest   = 100_000
	grown      = 3
	wholeBelow = 1_000_000
)

// sized are the engines of catalogs with many objects: several members of etcd would have the same records several times.
var sized = []string{"SQLite", "PostgreSQL", "Redis", "etcd, 1 member"}

// sizing is a catalog of so many objects, and what was measured of it.
type sizing struct {
	engine       string
	objects      int64
	loaded       result
	asked        result
	audited      *result
	disk, memory int64 // of the server, after the load
	byKind       map[string]int64
}

// sizes measures catalogs of more and more objects.
func (b *bench) sizes(ctx context.Context) (string, error) {
	var all []sizing
	var restores []result
	for objects := int64(smallest); ; objects *= 10 {
		objects = min(objects, b.objects)
		for _, engine := range sized {
			if most := b.most[engine]; most != nil && objects > *most {
				continue
			}
			one, err := b.sizing(ctx, engine, objects)
			if err != nil {
				return "", err
			}
			all = append(all, one)
			fmt.Fprintf(os.Stderr, "%s: %s objects were loaded in %s and asked in %s\n",
				engine, words.Number(objects), short(one.loaded.Took), short(one.asked.Took))
		}
		if objects <= wholeBelow {
			made, err := errand{Kind: "restore", Objects: objects, Nodes: b.nodes}.run(ctx, &server{name: "no engine"})
			if err != nil {
				return "", err
			}
			restores = append(restores, made)
		}
		if objects == b.objects {
			return sizesText(all, restores, b.nodes), nil
		}
	}
}

// sizing makes a catalog of so many objects, asks it, and removes it.
func (b *bench) sizing(ctx context.Context, engine string, objects int64) (one sizing, err error) {
	one = sizing{engine: engine, objects: objects}
	if objects == smallest {
		if one.byKind, err = b.kinds(ctx, engine); err != nil {
			return one, err
		}
	}
	s, err := startServer(ctx, engine, b.directory)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(s.directory)) }()
	e := errand{Kind: "load", Run: engine, Objects: objects, Nodes: b.nodes, Clients: 1}
	if one.loaded, err = e.run(ctx, s); err != nil {
		return one, err
	}
	used, err := s.use()
	if err != nil {
		return one, err
	}
	one.memory = used.memory
	if one.disk, err = s.onDisk(); err != nil {
		return one, err
	}
	e.Kind = "ask"
	if one.asked, err = e.run(ctx, s); err != nil {
		return one, err
	}
	if objects <= wholeBelow && engine == sized[0] {
		e.Kind = "audit"
		audited, err := e.run(ctx, s)
		if err != nil {
			return one, err
		}
		one.audited = &audited
	}
	return one, nil
}

// kinds says how many bytes an engine has for each record of a kind: by a catalog that has these alone.
func (b *bench) kinds(ctx context.Context, engine string) (map[string]int64, error) {
	bytes := map[string]int64{}
	for _, kind := range loadedKinds {
		err := func() (err error) {
			s, err := startServer(ctx, engine, b.directory)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(s.directory)) }()
			// An engine has something for itself: only by how much it grows is counted.
			var two [2]result
			for i := range two {
				e := errand{Kind: "load", Run: engine, From: int64(i) * smallest, Objects: int64(1+i*grown) * smallest, Nodes: b.nodes,
					Clients: 1, Only: kind.prefix}
				if two[i], err = e.run(ctx, s); err != nil {
					return err
				}
			}
			bytes[kind.prefix] = (two[1].Bytes - two[0].Bytes) / two[1].Operations
			return nil
		}()
		if err != nil {
			return nil, err
		}
	}
	return bytes, nil
}

// loadedKinds are the kinds of records of which there are many.
var loadedKinds = []struct{ prefix, name string }{
	{"o/", "object"}, {"g/", "group"}, {"l/", "live extents of a group"},
}

func sizesText(all []sizing, restores []result, nodes int) string {
	var text strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&text, format+"\n", arguments...) }
	line("### Bytes\n\nKeys and values, and what an engine has for one record more of a kind (of %s objects; Redis in memory, the others on "+
		"the disk), as records are written in order.\n", words.Number(smallest))
	header, rule := "| kind | records for 1,000 objects | key and value", "|---|---|---"
	var first []sizing
	for _, one := range all {
		if one.objects == all[0].objects {
			first = append(first, one)
			header, rule = header+" | "+one.engine, rule+"|---"
		}
	}
	line("%s |\n%s|", header, rule)
	for _, kind := range loadedKinds {
		size := first[0].loaded.Kinds[kind.prefix]
		row := fmt.Sprintf("| %s | %d | %d B", kind.name, size.Records*1000/first[0].objects, size.Bytes/size.Records)
		for _, one := range first {
			if one.byKind == nil {
				row += " | -"
			} else {
				row += fmt.Sprintf(" | %d B", one.byKind[kind.prefix])
			}
		}
		line("%s |", row)
	}
	line("\n| engine | objects | records | the engine says | for an object | files | memory of the server | loaded in | records a second |")
	line("|---|---|---|---|---|---|---|---|---|")
	for _, one := range all {
		line("| %s | %s | %s | %s | %d B | %s | %s | %s | %s |", one.engine, words.Number(one.objects), words.Number(one.loaded.Operations),
			words.Bytes(one.loaded.Bytes), one.loaded.Bytes/one.objects, words.Bytes(one.disk), orNone(one.memory),
			short(one.loaded.Took), words.Number(int64(float64(one.loaded.Operations)/one.loaded.Took.Seconds())))
	}
	line("\n### Questions\n\nOne client on a cluster of %d nodes. Where a question is asked again and again: median, 99th percentile and "+
		"slowest; else how long it takes, and what the client has on its heap after it.\n", nodes)
	engines := slices.Clone(sized)
	for _, what := range []string{askedGet, askedPut, askedPage, askedFullPage} {
		questions(line, what, all, engines, func(a asked) string {
			return fmt.Sprintf("%s, %s, %s", short(a.Times.Median), short(a.Times.P99), short(a.Times.Slowest))
		})
	}
	for _, what := range []string{askedObjects, askedSurvey, askedGroups, askedCopy} {
		questions(line, what, all, engines, func(a asked) string {
			return fmt.Sprintf("%s for %s records, %s", short(a.Took), words.Number(a.Records), words.Bytes(a.Heap))
		})
	}
	line("\n### What has all records in memory\n\nThe audit of the records, of SQLite, and a rebuild once it has read the " +
		"stores, which is the same for every engine and leaves the engine out.\n")
	line("| | objects | took | memory of the process | for an object |\n|---|---|---|---|---|")
	for _, one := range all {
		if a := one.audited; a != nil {
			line("| audit, %s | %s | %s | %s | %s |", one.engine, words.Number(one.objects), short(a.Took), words.Bytes(a.Memory),
				words.Bytes(a.Memory/one.objects))
		}
	}
	for _, r := range restores {
		line("| rebuild | %s | %s | %s | %s |", words.Number(r.Operations), short(r.Took), words.Bytes(r.Memory), words.Bytes(r.Memory/r.Operations))
	}
	line("")
	return text.String()
}

// questions is a table of one question to all engines at all sizes.
func questions(line func(string, ...any), what string, all []sizing, engines []string, cell func(asked) string) {
	header, rule := "| "+what, "|---"
	var counts []int64
	for _, one := range all {
		if !slices.Contains(counts, one.objects) {
			counts = append(counts, one.objects)
			header, rule = header+" | "+words.Number(one.objects), rule+"|---"
		}
	}
	line("%s |\n%s|", header, rule)
	for _, engine := range engines {
		row := "| " + engine
		for _, count := range counts {
			answer := "-"
			for _, one := range all {
				at := slices.IndexFunc(one.asked.Asked, func(a asked) bool { return a.What == what })
				if one.engine == engine && one.objects == count && at >= 0 {
					answer = cell(one.asked.Asked[at])
				}
			}
			row += " | " + answer
		}
		line("%s |", row)
	}
	line("")
}

func orNone(bytes int64) string {
	return cmp.Or(map[bool]string{true: "none"}[bytes == 0], words.Bytes(bytes))
}

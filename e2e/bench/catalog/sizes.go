package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/atomicfile"
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
	Engine  string           `json:"engine"`
	Objects int64            `json:"objects"`
	Loaded  result           `json:"loaded"`
	Asked   result           `json:"asked"`
	Audited *result          `json:"audited"`
	Disk    int64            `json:"disk"`   // bytes of the server's files, after the load
	Memory  int64            `json:"memory"` // of the server, after the load
	ByKind  map[string]int64 `json:"byKind"`
}

// measured is what has been measured of sizes. It is kept in a file, if there is one, after each, so that a run that was broken off
// goes on where it was.
type measured struct {
	From     string   `json:"from"` // provenance of the run that began
	All      []sizing `json:"all"`
	Restores []result `json:"restores"`

	file string
}

func readMeasured(file, from string) (*measured, error) {
	m := &measured{From: from, file: file}
	if file == "" {
		return m, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(text, m)
	}
	return m, err
}

func (m *measured) keep() error {
	if m.file == "" {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return atomicfile.Write(m.file, text)
}

// sizes measures catalogs of many objects, the largest first, but what has been measured already.
func (b *bench) sizes(ctx context.Context, from string) (string, error) {
	m, err := readMeasured(b.kept, from)
	if err != nil {
		return "", err
	}
	var counts []int64
	for objects := int64(smallest); objects < b.objects; objects *= 10 {
		counts = append(counts, objects)
	}
	counts = append(counts, b.objects)
	for _, objects := range slices.Backward(counts) {
		for _, engine := range sized {
			there := slices.ContainsFunc(m.All, func(s sizing) bool { return s.Engine == engine && s.Objects == objects })
			if most := b.most[engine]; b.report || there || most != nil && objects > *most || b.only != "" && b.only != engine {
				continue
			}
			one, err := b.sizing(ctx, engine, objects)
			if err != nil {
				return "", err
			}
			m.All = append(m.All, one)
			if err := m.keep(); err != nil {
				return "", err
			}
			fmt.Fprintf(os.Stderr, "%s: %s objects were loaded in %s and asked in %s\n",
				engine, words.Number(objects), short(one.Loaded.Took), short(one.Asked.Took))
		}
		there := slices.ContainsFunc(m.Restores, func(r result) bool { return r.Operations == objects })
		if objects > wholeBelow || b.report || there || b.only != "" {
			continue
		}
		made, err := errand{Kind: "restore", Objects: objects, Nodes: b.nodes}.run(ctx, &server{name: "no engine"})
		if err != nil {
			return "", err
		}
		m.Restores = append(m.Restores, made)
		if err := m.keep(); err != nil {
			return "", err
		}
	}
	if len(m.All) == 0 {
		return "", errors.New("nothing has been measured")
	}
	slices.SortStableFunc(m.All, func(a, b sizing) int {
		return cmp.Or(cmp.Compare(a.Objects, b.Objects), cmp.Compare(slices.Index(sized, a.Engine), slices.Index(sized, b.Engine)))
	})
	slices.SortFunc(m.Restores, func(a, b result) int { return cmp.Compare(a.Operations, b.Operations) })
	return m.From + sizesText(m.All, m.Restores, b.nodes), nil
}

// sizing makes a catalog of so many objects, asks it, and removes it.
func (b *bench) sizing(ctx context.Context, engine string, objects int64) (one sizing, err error) {
	one = sizing{Engine: engine, Objects: objects}
	if objects == smallest {
		if one.ByKind, err = b.kinds(ctx, engine); err != nil {
			return one, err
		}
	}
	s, err := startServer(ctx, engine, b.directory)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(s.directory)) }()
	e := errand{Kind: "load", Run: engine, Objects: objects, Nodes: b.nodes, Clients: 1}
	if one.Loaded, err = e.run(ctx, s); err != nil {
		return one, err
	}
	used, err := s.use()
	if err != nil {
		return one, err
	}
	one.Memory = used.memory
	if one.Disk, err = s.onDisk(); err != nil {
		return one, err
	}
	e.Kind = "ask"
	if one.Asked, err = e.run(ctx, s); err != nil {
		return one, err
	}
	if objects <= wholeBelow && engine == sized[0] {
		e.Kind = "audit"
		audited, err := e.run(ctx, s)
		if err != nil {
			return one, err
		}
		one.Audited = &audited
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
		if one.Objects == all[0].Objects {
			first = append(first, one)
			header, rule = header+" | "+one.Engine, rule+"|---"
		}
	}
	line("%s |\n%s|", header, rule)
	for _, kind := range loadedKinds {
		size := first[0].Loaded.Kinds[kind.prefix]
		row := fmt.Sprintf("| %s | %d | %d B", kind.name, size.Records*1000/first[0].Objects, size.Bytes/size.Records)
		for _, one := range first {
			if one.ByKind == nil {
				row += " | -"
			} else {
				row += fmt.Sprintf(" | %d B", one.ByKind[kind.prefix])
			}
		}
		line("%s |", row)
	}
	line("\n| engine | objects | records | the engine says | for an object | files | memory of the server | loaded in | records a second |")
	line("|---|---|---|---|---|---|---|---|---|")
	for _, one := range all {
		line("| %s | %s | %s | %s | %d B | %s | %s | %s | %s |", one.Engine, words.Number(one.Objects), words.Number(one.Loaded.Operations),
			words.Bytes(one.Loaded.Bytes), one.Loaded.Bytes/one.Objects, words.Bytes(one.Disk), orNone(one.Memory),
			short(one.Loaded.Took), words.Number(int64(float64(one.Loaded.Operations)/one.Loaded.Took.Seconds())))
	}
	line("\n### Questions\n\nOne client on a cluster of %d nodes. Where a question is asked again and again: median, 99th percentile and "+
		"slowest; else how long it takes for how many records (a walk is ended after %s: its pages all take the same), and what the client "+
		"has on its heap after it.\n", nodes, words.Number(walkRecords))
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
		if a := one.Audited; a != nil {
			line("| audit, %s | %s | %s | %s | %s |", one.Engine, words.Number(one.Objects), short(a.Took), words.Bytes(a.Memory),
				words.Bytes(a.Memory/one.Objects))
		}
	}
	for _, r := range restores {
		line("| rebuild | %s | %s | %s | %s |",
			words.Number(r.Operations), short(r.Took), words.Bytes(r.Memory), words.Bytes(r.Memory/r.Operations))
	}
	line("")
	return text.String()
}

// questions is a table of one question to all engines at all sizes.
func questions(line func(string, ...any), what string, all []sizing, engines []string, cell func(asked) string) {
	header, rule := "| "+what, "|---"
	var counts []int64
	for _, one := range all {
		if !slices.Contains(counts, one.Objects) {
			counts = append(counts, one.Objects)
			header, rule = header+" | "+words.Number(one.Objects), rule+"|---"
		}
	}
	line("%s |\n%s|", header, rule)
	for _, engine := range engines {
		row := "| " + engine
		for _, count := range counts {
			answer := "-"
			for _, one := range all {
				at := slices.IndexFunc(one.Asked.Asked, func(a asked) bool { return a.What == what })
				if one.Engine == engine && one.Objects == count && at >= 0 {
					answer = cell(one.Asked.Asked[at])
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

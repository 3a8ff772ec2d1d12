package gateway

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/stripe"
)

// Class says how the objects under some prefixes are kept: the ladder of schemes they may ever take and how they are
// grouped. A class's ladder and mode apply to groups written from then on; existing groups keep theirs.
type Class struct {
	Name       string
	Ladder     stripe.Ladder
	Default    stripe.Scheme
	Mode       stripe.Mode
	Prefixes   []string      // keys of this class where the client names none; the longest match wins
	PackBelow  int64         // objects smaller than this share groups; 0: none do
	PackDelay  time.Duration // how long a small object waits for company
	GroupBytes int64         // user bytes per group of a large object
}

// Limits of a class.
const (
	maxRows       = 64       // rows per group: a chunk is that many cells
	minGroupBytes = 64 << 10 // smaller groups cost more in records than they hold
	maxGroupBytes = 64 << 20 // a group is staged in memory while it is written
)

type classFile struct {
	Classes []struct {
		Name       string   `json:"name"`
		Ladder     string   `json:"ladder"`
		Default    string   `json:"default"`
		Mode       string   `json:"mode"`
		Prefixes   []string `json:"prefixes"`
		PackBelow  string   `json:"packBelow"`
		PackDelay  string   `json:"packDelay"`
		GroupBytes string   `json:"groupBytes"`
	} `json:"classes"`
}

// DefaultClasses is what a cluster has that was given no class file: one class for every key.
func DefaultClasses() []Class {
	classes, err := ParseClasses([]byte("classes:\n- {name: default, ladder: 'rep(3),rs(4,2),rs(12,2)', prefixes: ['']}\n"))
	if err != nil {
		panic("the built-in class is invalid: " + err.Error()) // invariant: constant input
	}
	return classes
}

// LoadClasses reads a class file.
func LoadClasses(path string) ([]Class, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the class file: %w", err)
	}
	classes, err := ParseClasses(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return classes, nil
}

// ParseClasses reads the YAML of a class file and fills in defaults: mode free, packBelow 64KiB, packDelay 5ms,
// groupBytes 4MiB, and the first scheme of the ladder. Unknown fields are refused.
func ParseClasses(text []byte) ([]Class, error) {
	var file classFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("class file: %w", err)
	}
	if len(file.Classes) == 0 {
		return nil, fmt.Errorf("class file: no classes; give at least one entry under \"classes:\"")
	}
	names, prefixes := map[string]bool{}, map[string]string{}
	var classes []Class
	for i, entry := range file.Classes {
		class := Class{Name: entry.Name, Mode: stripe.Mode(entry.Mode), Prefixes: entry.Prefixes}
		wrong := func(field string, err error) error {
			return fmt.Errorf("class %d (%q), %s: %w", i+1, entry.Name, field, err)
		}
		if entry.Name == "" || strings.ContainsAny(entry.Name, "/ \t\n") || len(entry.Name) > 63 {
			return nil, wrong("name", fmt.Errorf("want 1 to 63 characters without spaces or slashes"))
		}
		if names[entry.Name] {
			return nil, wrong("name", fmt.Errorf("used twice; class names are unique"))
		}
		names[entry.Name] = true
		for _, prefix := range entry.Prefixes {
			if other, taken := prefixes[prefix]; taken {
				return nil, wrong("prefixes", fmt.Errorf("prefix %q belongs to class %q already; each prefix has one class", prefix, other))
			}
			prefixes[prefix] = entry.Name
		}
		var err error
		if class.Ladder, err = stripe.ParseLadder(entry.Ladder); err != nil {
			return nil, wrong("ladder", err)
		}
		class.Default = class.Ladder[0]
		if entry.Default != "" {
			if class.Default, err = stripe.ParseScheme(entry.Default); err != nil {
				return nil, wrong("default", err)
			}
			if !class.Ladder.Contains(class.Default) {
				return nil, wrong("default", fmt.Errorf("%s is not on the ladder %s; choose a scheme of the ladder", class.Default, class.Ladder))
			}
		}
		if class.Mode == "" {
			class.Mode = stripe.ModeFree
		}
		layout, err := stripe.NewLayout(class.Ladder, 0, class.Mode)
		if err != nil {
			return nil, wrong("ladder", err)
		}
		if layout.Rows > maxRows {
			return nil, wrong("ladder", fmt.Errorf("%s needs groups of %d rows (at most %d): choose schemes whose k divide the widest one", class.Ladder, layout.Rows, maxRows))
		}
		if class.PackBelow, err = parseBytes(entry.PackBelow, 64<<10); err != nil {
			return nil, wrong("packBelow", err)
		}
		if class.GroupBytes, err = parseBytes(entry.GroupBytes, 4<<20); err != nil {
			return nil, wrong("groupBytes", err)
		}
		if class.GroupBytes < minGroupBytes || class.GroupBytes > maxGroupBytes {
			return nil, wrong("groupBytes", fmt.Errorf("%d is outside %d to %d bytes", class.GroupBytes, minGroupBytes, maxGroupBytes))
		}
		if class.PackBelow > class.GroupBytes {
			return nil, wrong("packBelow", fmt.Errorf("%d is over groupBytes (%d); a small object must fit one column of a group", class.PackBelow, class.GroupBytes))
		}
		class.PackDelay = 5 * time.Millisecond
		if entry.PackDelay != "" {
			if class.PackDelay, err = time.ParseDuration(entry.PackDelay); err != nil {
				return nil, wrong("packDelay", err)
			}
			if class.PackDelay < 0 || class.PackDelay > time.Minute {
				return nil, wrong("packDelay", fmt.Errorf("%s is outside 0 to 1m", class.PackDelay))
			}
		}
		classes = append(classes, class)
	}
	return classes, nil
}

func parseBytes(text string, absent int64) (int64, error) {
	if text == "" {
		return absent, nil
	}
	n, err := humanize.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size such as 64KiB or 4MiB", text)
	}
	return int64(n), nil
}

// nodesNeeded is how many distinct nodes a group of the class lies on.
func (c *Class) nodesNeeded() int { return c.Ladder.Width() + c.Ladder.MaxParity() }

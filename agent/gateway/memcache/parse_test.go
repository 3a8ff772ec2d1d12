package memcache

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/values"
)

var aTime = time.Unix(1_700_000_000, 0)

func TestTimesToLive(t *testing.T) {
	for word, want := range map[string]time.Time{
		"0": {}, "1": aTime.Add(time.Second), "2592000": aTime.Add(30 * 24 * time.Hour), "2592001": time.Unix(2592001, 0),
		"1700000100": time.Unix(1700000100, 0), "-1": time.Unix(1, 0), "4102444800": time.Unix(4102444800, 0),
	} {
		seconds, ok := parseTime(word)
		if got := expiry(seconds, aTime); !ok || !got.Equal(want) {
			t.Errorf("%s is until %v, want %v", word, got, want)
		}
	}
	for _, word := range []string{"", "x", "1x", "99999999999999999999", "253402300800", "1.5", "-9999999999"} {
		if seconds, ok := parseTime(word); ok {
			t.Errorf("%q is %d seconds", word, seconds)
		}
	}
	for expires, want := range map[time.Time]int64{
		{}: -1, aTime: 0, aTime.Add(-time.Hour): 0, aTime.Add(time.Millisecond): 1, aTime.Add(100 * time.Second): 100,
	} {
		if got := remaining(expires, aTime); got != want {
			t.Errorf("until %v there are %d seconds, want %d", expires, got, want)
		}
	}
}

func TestCounters(t *testing.T) {
	for data, want := range map[string]uint64{"0": 0, "12": 12, "12  ": 12, " 12 x": 12, "18446744073709551615": 1<<64 - 1} {
		if got, ok := parseCounter([]byte(data)); !ok || got != want {
			t.Errorf("%q counts as %d, %v", data, got, ok)
		}
	}
	for _, data := range []string{"", " ", "x", "12x", "-1", "18446744073709551616", strings.Repeat("0", 2000)} {
		if got, ok := parseCounter([]byte(data)); ok {
			t.Errorf("%q counts as %d", data, got)
		}
	}
	for _, one := range []struct {
		counter, delta uint64
		isUp           bool
		want           uint64
	}{{1, 2, true, 3}, {1<<64 - 1, 2, true, 1}, {3, 2, false, 1}, {2, 3, false, 0}, {0, 0, false, 0}} {
		if got := count(one.counter, one.delta, one.isUp); got != one.want {
			t.Errorf("%+v is %d", one, got)
		}
	}
}

// What a command makes of what is there.
func TestStoring(t *testing.T) {
	there := &values.Value{
		Data: []byte("old"), Class: "odd", Revision: block.Stamp{Sequence: 5, Salt: 1}, Expires: aTime,
		Metadata: map[string]string{flagsName: "7", "kind": "x", wonName: "1", staleName: "1"},
	}
	joined := map[string]string{flagsName: "7", "kind": "x"}
	fresh := func(class string, metadata map[string]string) *values.Put {
		return &values.Put{Data: []byte("new"), Class: class, Metadata: metadata}
	}
	kept := func(data string, metadata map[string]string) *values.Put {
		return &values.Put{Data: []byte(data), Class: "odd", Expires: aTime, Metadata: metadata}
	}
	flags, marks := map[string]string{flagsName: "3"}, map[string]string{wonName: "1", staleName: "1"}
	for name, test := range map[string]struct {
		command storage
		now     *values.Value
		want    *values.Put
		result  result
	}{
		"set":                 {storage{how: storeSet, flags: 3}, there, fresh("odd", flags), stored},
		"add":                 {storage{how: storeAdd, flags: 3}, nil, fresh("", flags), stored},
		"add over":            {storage{how: storeAdd}, there, nil, notStored},
		"replace":             {storage{how: storeReplace}, there, fresh("odd", nil), stored},
		"replace nothing":     {storage{how: storeReplace}, nil, nil, notStored},
		"cas":                 {storage{how: storeCAS, cas: 5}, there, fresh("odd", nil), stored},
		"cas nothing":         {storage{how: storeCAS, cas: 5}, nil, nil, notFound},
		"cas of another":      {storage{how: storeCAS, cas: 4}, there, nil, exists},
		"cas of none":         {storage{how: storeCAS, isStaleLower: true}, there, nil, exists},
		"cas of a later":      {storage{how: storeCAS, cas: 6, isStaleLower: true}, there, nil, exists},
		"append":              {storage{how: storeAppend}, there, kept("oldnew", joined), stored},
		"prepend":             {storage{how: storePrepend}, there, kept("newold", joined), stored},
		"append to nothing":   {storage{how: storeAppend}, nil, nil, notStored},
		"append to another":   {storage{how: storeAppend, cas: 4}, there, nil, exists},
		"append or make":      {storage{how: storeAppend, vivifies: true}, nil, fresh("", nil), stored},
		"cas of an older one": {storage{how: storeCAS, cas: 4, isStaleLower: true}, there, kept("new", marks), stored},
	} {
		got, result := test.command.over(test.now, []byte("new"), time.Time{})
		if difference := cmp.Diff(test.want, got); difference != "" || result != test.result {
			t.Errorf("%s: %v, want %v; %s", name, result, test.result, difference)
		}
	}
	if len(there.Metadata) != 4 || string(there.Data) != "old" {
		t.Errorf("what was there was changed: %v", there)
	}
}

// What becomes of a value that mg looks at.
func TestVisits(t *testing.T) {
	soon := aTime.Add(50 * time.Second)
	for name, test := range map[string]struct {
		flags string
		now   *item
		want  visit
	}{
		"nothing":           {"v", nil, visit{}},
		"looking":           {"v t", &item{expires: soon}, visit{expires: soon}},
		"made":              {"N30", nil, visit{isNew: true, won: true, changes: true, expires: aTime.Add(30 * time.Second)}},
		"made, and touched": {"N30 T0", nil, visit{isNew: true, won: true, changes: true}},
		"there":             {"N30", &item{expires: soon}, visit{expires: soon}},
		"touched":           {"T100", &item{expires: soon}, visit{changes: true, expires: aTime.Add(100 * time.Second)}},
		"soon gone":         {"R60", &item{expires: soon}, visit{won: true, changes: true, expires: soon}},
		"not so soon":       {"R40", &item{expires: soon}, visit{expires: soon}},
		"never gone":        {"R60", &item{}, visit{}},
		"already won":       {"R60", &item{expires: soon, won: true}, visit{expires: soon}},
		"touched before":    {"T100 R60", &item{expires: soon}, visit{changes: true, expires: aTime.Add(100 * time.Second)}},
		"touched after":     {"R60 T100", &item{expires: soon}, visit{won: true, changes: true, expires: aTime.Add(100 * time.Second)}},
		"stale":             {"v", &item{stale: true}, visit{won: true, changes: true}},
		"stale, and won":    {"v", &item{stale: true, won: true}, visit{}},
	} {
		m, wrong := parseMeta(strings.Fields("mg k "+test.flags), 2)
		if got := m.visit(test.now, aTime); wrong != "" || got != test.want {
			t.Errorf("%s: %+v, want %+v %s", name, got, test.want, wrong)
		}
	}
}

func TestFlagsOfClients(t *testing.T) {
	for text, want := range map[string]uint32{"": 0, "7": 7, "4294967295": 1<<32 - 1, "4294967296": 0, "x": 0} {
		if got := flagsOf(map[string]string{flagsName: text}); got != want {
			t.Errorf("%q are flags %d", text, got)
		}
	}
	if flagsOf(nil) != 0 || metadataOf(0) != nil || flagsOf(metadataOf(9)) != 9 {
		t.Error("flags do not come back")
	}
}

func FuzzWords(f *testing.F) {
	for _, line := range []string{"", " ", "get a b", "set a 0 0 1 noreply", strings.Repeat("x ", 100), "a  b"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		want := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' })
		got := words(line, nil)
		if len(want) > mostWords {
			if len(got) != mostWords+1 || !slices.Equal(got[:mostWords], want[:mostWords]) {
				t.Fatalf("%q are the words %q", line, got)
			}
		} else if !slices.Equal(got, want) {
			t.Fatalf("%q are the words %q, want %q", line, got, want)
		}
		if len(got) >= 6 {
			if s, wrong := parseStorage(storeCAS, got); wrong == "" && (!isKey(s.key) || s.length < 0) {
				t.Fatalf("%q is taken: %+v", line, s)
			}
		}
	})
}

func FuzzMeta(f *testing.F) {
	for _, line := range []string{
		"mg k v", "mg YQ== b k v", "ms k T1 F2 C3 MA I N5 c s", "ma k N0 J1 D2 M- q t", "md k I T30 x", "mg k O1 P2 L3 E4",
		"mg 0000 b0 k",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := words(line, nil)
		if len(words) < 2 {
			return
		}
		m, wrong := parseMeta(words, 2)
		if wrong != "" {
			if !strings.HasPrefix(wrong, "CLIENT_ERROR ") || strings.Count(wrong, "\n") != 1 || !strings.HasSuffix(wrong, "\r\n") {
				t.Fatalf("%q is answered by %q", line, wrong)
			}
			return
		}
		if m.key == "" || len(m.key) > mostKey {
			t.Fatalf("%q has the key %q", line, m.key)
		}
		if m.isBinary && !slices.ContainsFunc(m.flags, func(flag string) bool { return flag[0] == 'b' }) {
			t.Fatalf("%q is binary", line)
		}
		told := string(m.addTold(nil, &item{}, time.Time{}, false, aTime))
		asked := string(m.addAsked(nil))
		asksKey := slices.ContainsFunc(m.flags, func(flag string) bool { return flag[0] == 'k' })
		key := base64.StdEncoding.EncodeToString([]byte(m.key))
		if m.isBinary && asksKey && !strings.Contains(asked, " k"+key+" b") {
			t.Fatalf("%q tells the key %q", line, asked)
		}
		if strings.ContainsAny(told+asked, "\r\n") && !strings.ContainsAny(line, "\r\n") {
			t.Fatalf("%q tells more than a line: %q", line, told)
		}
		m.visit(nil, aTime)
		m.visit(&item{expires: aTime, stale: true}, aTime)
	})
}

func FuzzCounter(f *testing.F) {
	f.Add([]byte("12 x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if counter, ok := parseCounter(data); ok && len(data) == 1 && counter > 9 {
			t.Fatalf("%q counts as %d", data, counter)
		}
	})
}

package gateway_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

func TestClassesAreDeclaredChangedAndRemoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	other := c.newGateway("other")
	server := httptest.NewServer(c.gateway.Handler())
	defer server.Close()
	remote, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	ctx := t.Context()
	spec := api.ClassSpec{Name: "media", Ladder: "rep(2),rs(3,1)", Prefixes: []string{"media/"}, HalfLife: "1h", Dwell: "10m"}
	class, err := remote.PutClass(ctx, spec)
	if err != nil || class.Origin != api.ClassFromAPI || class.HalfLife != "1h0m0s" || class.Dwell != "10m0s" || class.Nodes != 4 || class.PackBelow != 64<<10 {
		t.Fatalf("%+v, %v", class, err)
	}
	if again, err := remote.PutClass(ctx, spec); err != nil || again.Name != "media" {
		t.Errorf("declaring it again: %v", err)
	}
	c.put("media/k", noise(100_000, 1), api.PutOptions{})
	if have := c.stat("media/k"); have.Class != "media" || have.Scheme != "rep(2)" {
		t.Errorf("an object of the new class: %+v", have.Object)
	}
	c.await("the other gateway knows it", func() bool {
		return slices.ContainsFunc(other.Classes(), func(c api.ClassInfo) bool { return c.Name == "media" })
	})
	for what, wrong := range map[string]struct {
		spec  api.ClassSpec
		class error
	}{
		"belongs to class": {api.ClassSpec{Name: "more", Ladder: "rep(2)", Prefixes: []string{"media/"}}, api.ErrConflict},
		"named twice":      {api.ClassSpec{Name: "more", Ladder: "rep(2)", Prefixes: []string{"a", "a"}}, api.ErrBadRequest},
		"halfLife":         {api.ClassSpec{Name: "more", Ladder: "rep(2)", HalfLife: "10ms"}, api.ErrBadRequest},
		"dwell":            {api.ClassSpec{Name: "more", Ladder: "rep(2)", Dwell: "soon"}, api.ErrBadRequest},
		"ladder":           {api.ClassSpec{Name: "more"}, api.ErrBadRequest},
		"name":             {api.ClassSpec{Name: "mo re", Ladder: "rep(2)"}, api.ErrBadRequest},
	} {
		if _, err := remote.PutClass(ctx, wrong.spec); !errors.Is(err, wrong.class) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := remote.DeleteClass(ctx, "media"); !errors.Is(err, api.ErrConflict) || !strings.Contains(err.Error(), "has objects") {
		t.Errorf("removing a class with objects: %v", err)
	}
	c.put("media/empty", nil, api.PutOptions{})
	if err := c.gateway.Delete(ctx, "media/k", nil); err != nil {
		t.Fatal(err)
	}
	if err := remote.DeleteClass(ctx, "media"); !errors.Is(err, api.ErrConflict) {
		t.Errorf("removing a class with an object without bytes: %v", err)
	}
	if err := c.gateway.Delete(ctx, "media/empty", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what is gone is removed
		if err := remote.DeleteClass(ctx, "media"); err != nil {
			t.Fatal(err)
		}
	}
	c.put("media/k", noise(100, 1), api.PutOptions{})
	if have := c.stat("media/k").Class; have != "default" {
		t.Errorf("after its class was removed the key is of class %s", have)
	}
	c.await("the other gateway knows that it is gone", func() bool {
		return !slices.ContainsFunc(other.Classes(), func(c api.ClassInfo) bool { return c.Name == "media" })
	})
}

// An object keeps the class it was put into: what a class has by its prefixes and what is of it are counted apart.
func TestHeatReportTellsWhatIsOfAnotherClass(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	c.fill("media/", 3)
	c.put("other", noise(100, 1), api.PutOptions{})
	c.putClass(c.gateway, api.ClassSpec{Name: "media", Ladder: "rep(3)", Prefixes: []string{"media/"}})
	c.put("media/new", noise(100, 1), api.PutOptions{})
	c.putClass(c.gateway, api.ClassSpec{Name: "deep", Ladder: "rep(3)", Prefixes: []string{"media/2"}})
	report := c.walked(c.gateway, clock)
	for name, want := range map[string][]api.ClassCount{
		"media":   {{Class: "default", Objects: 2, Bytes: 2 * objectBytes}},
		"deep":    {{Class: "default", Objects: 1, Bytes: objectBytes}},
		"default": nil,
	} {
		class := classOf(t, report, name)
		if !slices.Equal(class.Elsewhere, want) {
			t.Errorf("elsewhere than in class %s are %+v, want %+v", name, class.Elsewhere, want)
		}
	}
	if class := classOf(t, report, "media"); class.Objects != 1 || !slices.Equal(class.CountedPrefixes, []string{"media/"}) {
		t.Errorf("%+v", class)
	}
	findings, err := c.gateway.Doctor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(findings, func(f api.Finding) bool {
		return f.Subject == "class media" && strings.Contains(f.Text, "2 objects (120000 bytes) whose keys belong to it are of class default")
	}) {
		t.Errorf("the doctor finds %+v", findings)
	}
}

// The class file says what a cluster begins with, and what nobody has declared otherwise since.
func TestClassFileComesBehindTheAPI(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	with := func(text string) func(*gateway.Options) {
		return func(o *gateway.Options) {
			var err error
			if o.Classes, err = api.ParseClasses([]byte("classes:\n" + text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	restart := func(text string) map[string]string {
		c.restart(newHandClock(), with(text))
		have := map[string]string{}
		for _, class := range c.gateway.Classes() {
			have[class.Name] = fmt.Sprint(class.Ladder, " ", class.Prefixes, " ", class.Origin)
		}
		return have
	}
	check := func(what string, have, want map[string]string) {
		t.Helper()
		for _, name := range []string{"odd", "firm", "temporary"} { // of the first start, in no later file
			delete(have, name)
		}
		if !maps.Equal(have, want) {
			t.Errorf("%s: have %v, want %v", what, have, want)
		}
	}
	file := "- {name: default, ladder: 'rep(3)', prefixes: ['']}\n- {name: a, ladder: 'rep(2)', prefixes: ['a/']}\n"
	check("an edited file", restart(file), map[string]string{"default": "rep(3) [] file", "a": "rep(2) [a/] file"})
	c.putClass(c.gateway, api.ClassSpec{Name: "a", Ladder: "rep(4)", Prefixes: []string{"a/", "b/"}})
	check("the same file after a declaration", restart(file), map[string]string{"default": "rep(3) [] file", "a": "rep(4) [a/ b/] api"})
	check("a file that wants a prefix that was declared", restart(file+"- {name: b, ladder: 'rep(2)', prefixes: ['b/', 'c/']}\n"),
		map[string]string{"default": "rep(3) [] file", "a": "rep(4) [a/ b/] api", "b": "rep(2) [c/] file"})
	if err := c.gateway.DeleteClass(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	check("a file with a class that was removed", restart(file), map[string]string{"default": "rep(3) [] file", "b": "rep(2) [c/] file"})
	check("a file with another name for a class", restart("- {name: every, ladder: 'rep(2)', prefixes: ['']}\n"),
		map[string]string{"default": "rep(3) [] file", "every": "rep(2) [] file", "b": "rep(2) [c/] file"})
	if have := c.put("k", []byte("v"), api.PutOptions{}).Class; have != "every" {
		t.Errorf("a new object is of class %s", have)
	}
}

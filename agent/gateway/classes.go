package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
)

// registry holds the classes in force. They are records of the catalog: a class file says what a cluster begins with,
// the API changes it, and every gateway looks for changes about once a second.
type registry struct {
	current atomic.Pointer[classList]
	reading sync.Mutex // one refresh at a time
}

// classList is immutable. A class that did not change keeps its address from one list to the next.
type classList struct {
	version int64
	entries []*classEntry // by name
}

type classEntry struct {
	api.Class
	origin api.ClassOrigin
}

// classRefresh is how often a gateway looks whether classes have changed.
const classRefresh = time.Second

// all returns the classes in force, by name.
func (r *registry) all() []*classEntry { return r.current.Load().entries }

// named returns a class of the list, nil if there is none of that name.
func (l *classList) named(name string) *classEntry {
	at, found := slices.BinarySearchFunc(l.entries, name, func(e *classEntry, name string) int { return strings.Compare(e.Name, name) })
	if !found {
		return nil
	}
	return l.entries[at]
}

// classFor returns the class a key belongs to: the named one, else the one with the longest matching prefix.
func (g *Gateway) classFor(key, name string) (*api.Class, error) {
	list := g.classes.current.Load()
	if name != "" {
		if entry := list.named(name); entry != nil {
			return &entry.Class, nil
		}
		return nil, api.Refuse(api.ErrBadRequest, "there is no class %q; %s", name, list.names())
	}
	var best *api.Class
	longest := -1
	for _, entry := range list.entries {
		for _, prefix := range entry.Prefixes {
			if len(prefix) > longest && strings.HasPrefix(key, prefix) {
				best, longest = &entry.Class, len(prefix)
			}
		}
	}
	if best == nil {
		return nil, api.Refuse(api.ErrBadRequest, "no class has a prefix that matches key %.80q; %s", key, list.names())
	}
	return best, nil
}

// names tells a person which classes there are.
func (l *classList) names() string {
	if len(l.entries) == 0 {
		return "there are no classes; declare one"
	}
	names := make([]string, len(l.entries))
	for i, entry := range l.entries {
		names[i] = entry.Name
	}
	return "the classes are " + strings.Join(names, ", ")
}

// enterClasses makes the classes of the class file records: those that are new, and those that only class files have
// spoken of so far. What was declared or removed through the API stays as it is. Where prefixes clash, the API comes before
// this class file, and this one before those of earlier starts.
func (g *Gateway) enterClasses(ctx context.Context) error {
	var lost []string
	err := g.catalog.ChangeClasses(ctx, func(records []catalog.Class) (changed []catalog.Class, err error) {
		known, declared, filed := map[string]catalog.Class{}, map[string]string{}, map[string]bool{}
		for i := range g.options.Classes {
			for _, prefix := range g.options.Classes[i].Prefixes {
				filed[prefix] = true
			}
		}
		var earlier []api.Class
		for i := range records {
			record := &records[i]
			known[record.Name] = *record
			class, err := readClass(record)
			switch {
			case err != nil || record.Removed:
			case record.Origin != string(api.ClassFromFile):
				for _, prefix := range class.Prefixes {
					declared[prefix] = record.Name
				}
			case !slices.ContainsFunc(g.options.Classes, func(c api.Class) bool { return c.Name == class.Name }):
				class.Prefixes = slices.DeleteFunc(class.Prefixes, func(prefix string) bool { return filed[prefix] })
				earlier = append(earlier, class)
			}
		}
		lost = nil
		for _, class := range append(slices.Clone(g.options.Classes), earlier...) {
			was, there := known[class.Name]
			if there && was.Origin != string(api.ClassFromFile) {
				continue
			}
			class.Prefixes = slices.DeleteFunc(slices.Clone(class.Prefixes), func(prefix string) bool {
				owner, is := declared[prefix]
				if is {
					lost = append(lost, fmt.Sprintf("%q of class %s to class %s", prefix, class.Name, owner))
				}
				return is
			})
			record, err := recordOf(&class, api.ClassFromFile)
			if err != nil {
				return nil, err
			}
			if !there || !reflect.DeepEqual(was, record) {
				changed = append(changed, record)
			}
		}
		return changed, nil
	})
	if err != nil {
		return fmt.Errorf("entering the classes of the class file: %w", err)
	}
	if len(lost) > 0 {
		g.log.Warn("prefixes of the class file belong to classes declared since", "prefixes", strings.Join(lost, ", "))
	}
	return nil
}

func recordOf(class *api.Class, origin api.ClassOrigin) (catalog.Class, error) {
	body, err := json.Marshal(class.Spec())
	if err != nil {
		return catalog.Class{}, fmt.Errorf("encoding class %s: %w", class.Name, err)
	}
	return catalog.Class{Name: class.Name, Body: body, Origin: string(origin)}, nil
}

func readClass(record *catalog.Class) (api.Class, error) {
	var spec api.ClassSpec
	if err := json.Unmarshal(record.Body, &spec); err != nil {
		return api.Class{}, fmt.Errorf("reading class %s: %w", record.Name, err)
	}
	class, err := spec.Parse()
	if err != nil {
		return api.Class{}, fmt.Errorf("reading class %s: %w", record.Name, err)
	}
	return class, nil
}

// refreshClasses takes over what the catalog says of the classes.
func (g *Gateway) refreshClasses(ctx context.Context) error {
	r := &g.classes
	r.reading.Lock()
	defer r.reading.Unlock()
	was := r.current.Load()
	if was != nil {
		if version, err := g.catalog.ClassesVersion(ctx); err != nil || version == was.version {
			return err
		}
	}
	records, version, err := g.catalog.Classes(ctx)
	if err != nil {
		return err
	}
	fresh := &classList{version: version}
	for i := range records {
		record := &records[i]
		if record.Removed {
			continue
		}
		class, err := readClass(record)
		if err != nil {
			g.log.Error("a class is left out; a newer release may have written it", "class", record.Name, "cause", err)
			continue
		}
		entry := &classEntry{Class: class, origin: api.ClassOrigin(record.Origin)}
		if was != nil {
			if old := was.named(class.Name); old != nil && reflect.DeepEqual(old, entry) {
				entry = old
			}
		}
		fresh.entries = append(fresh.entries, entry)
		g.heat.tracker.SetHalfLife(class.Name, class.HalfLife, g.options.Now())
	}
	slices.SortFunc(fresh.entries, func(a, b *classEntry) int { return strings.Compare(a.Name, b.Name) })
	r.current.Store(fresh)
	g.heat.kick()
	return nil
}

func (g *Gateway) classLoop(ctx context.Context) {
	every(ctx, classRefresh, func(ctx context.Context) {
		if err := g.refreshClasses(ctx); err != nil && ctx.Err() == nil {
			g.log.Warn("looking for changes of classes", "cause", err)
		}
	})
}

// Classes returns the classes in force, by name.
func (g *Gateway) Classes() []api.ClassInfo {
	list := []api.ClassInfo{}
	for _, entry := range g.classes.all() {
		list = append(list, entry.Info(entry.origin))
	}
	return list
}

// PutClass declares a class, new or in place of the one of that name. Groups that exist keep the ladder they were written
// for. A prefix belongs to one class: ErrConflict where another one has it.
func (g *Gateway) PutClass(ctx context.Context, spec api.ClassSpec) (api.ClassInfo, error) {
	class, err := spec.Parse()
	if err != nil {
		return api.ClassInfo{}, api.Refuse(api.ErrBadRequest, "class %q, %w", spec.Name, err)
	}
	for i, prefix := range class.Prefixes {
		if slices.Contains(class.Prefixes[:i], prefix) {
			return api.ClassInfo{}, api.Refuse(api.ErrBadRequest, "class %q, prefixes: %q is named twice", spec.Name, prefix)
		}
	}
	fresh, err := recordOf(&class, api.ClassFromAPI)
	if err != nil {
		return api.ClassInfo{}, err
	}
	err = g.catalog.ChangeClasses(ctx, func(records []catalog.Class) ([]catalog.Class, error) {
		for i := range records {
			record := &records[i]
			if record.Name == class.Name && reflect.DeepEqual(*record, fresh) {
				return nil, nil
			}
			if record.Name == class.Name || record.Removed {
				continue
			}
			other, err := readClass(record)
			if err != nil {
				return nil, err
			}
			for _, prefix := range class.Prefixes {
				if slices.Contains(other.Prefixes, prefix) {
					return nil, api.Refuse(api.ErrConflict, "class %q: prefix %q belongs to class %q; each prefix has one class", class.Name, prefix, other.Name)
				}
			}
		}
		return []catalog.Class{fresh}, nil
	})
	if err != nil {
		return api.ClassInfo{}, err
	}
	if err := g.refreshClasses(ctx); err != nil {
		return api.ClassInfo{}, err
	}
	g.heat.kick()
	return class.Info(api.ClassFromAPI), nil
}

// DeleteClass removes a class that no object is of; ErrConflict where there are some, nil where there is no
// such class. A put that is under way meanwhile may still leave an object behind, which stays readable.
func (g *Gateway) DeleteClass(ctx context.Context, name string) error {
	if err := g.refreshClasses(ctx); err != nil {
		return err
	}
	if g.classes.current.Load().named(name) == nil {
		return nil
	}
	if err := g.checkUnused(ctx, name); err != nil {
		return err
	}
	err := g.catalog.ChangeClasses(ctx, func(records []catalog.Class) ([]catalog.Class, error) {
		for _, record := range records {
			if record.Name == name && !record.Removed {
				record.Removed, record.Origin = true, string(api.ClassFromAPI)
				return []catalog.Class{record}, nil
			}
		}
		return nil, nil
	})
	if err != nil {
		return err
	}
	return g.refreshClasses(ctx)
}

// checkUnused looks for objects of a class: for groups with something in them first, as they are fewer.
func (g *Gateway) checkUnused(ctx context.Context, name string) error {
	used := api.Refuse(api.ErrConflict, "class %q has objects; delete them, or put them anew under another class, first", name)
	for page, err := range g.catalog.GroupSummaries(ctx, block.GroupID{}) {
		if err != nil {
			return err
		}
		for i := range page {
			if page[i].Class != name {
				continue
			}
			view, err := g.catalog.Group(ctx, page[i].ID)
			if err == nil && view.Live > 0 {
				return used
			}
			if err != nil && !errors.Is(err, catalog.ErrNoGroup) {
				return err
			}
		}
	}
	for page, err := range g.catalog.ObjectSummaries(ctx) {
		if err != nil {
			return err
		}
		if slices.ContainsFunc(page, func(object catalog.ObjectSummary) bool { return object.Class == name }) {
			return used
		}
	}
	return nil
}

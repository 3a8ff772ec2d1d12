package class

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/job"
)

// Registry holds the classes in force. They are records of the catalog: a class file says what a cluster begins with,
// the API changes it, and every gateway is told of changes.
type Registry struct {
	catalog *catalog.Catalog
	log     *slog.Logger
	file    []api.Class // what the cluster begins with
	changed func(entries []*Entry)

	current atomic.Pointer[classList]
	reading sync.Mutex // one refresh at a time
}

// New returns a registry of the classes in a catalog, which holds none before Begin. file is what a class file
// says.
func New(records *catalog.Catalog, log *slog.Logger, file []api.Class) *Registry {
	return &Registry{catalog: records, log: log, file: file, changed: func([]*Entry) {}}
}

// OnChange has a function called with the classes in force whenever they were read anew. Call it before Begin.
func (r *Registry) OnChange(changed func(entries []*Entry)) { r.changed = changed }

// Begin enters the classes of the class file into the catalog and reads those in force.
func (r *Registry) Begin(ctx context.Context) error {
	if err := r.enterClasses(ctx); err != nil {
		return err
	}
	if err := r.refresh(ctx); err != nil {
		return fmt.Errorf("reading the classes: %w", err)
	}
	return nil
}

// classList is immutable. A class that did not change keeps its address from one list to the next.
type classList struct {
	version int64
	entries []*Entry // by name
	routes  *Routes
}

// Entry is a class and who declared it so.
type Entry struct {
	api.Class
	origin api.ClassOrigin
}

// All returns the classes in force, by name.
func (r *Registry) All() []*Entry { return r.current.Load().entries }

// Named returns the class in force of that name, nil if there is none.
func (r *Registry) Named(name string) *Entry { return r.current.Load().named(name) }

// named returns a class of the list, nil if there is none of that name.
func (l *classList) named(name string) *Entry {
	at, found := slices.BinarySearchFunc(l.entries, name, func(e *Entry, name string) int { return strings.Compare(e.Name, name) })
	if !found {
		return nil
	}
	return l.entries[at]
}

// For returns the class a key belongs to: the named one, else the one with the longest matching prefix.
func (r *Registry) For(key, name string) (*api.Class, error) {
	list := r.current.Load()
	if name != "" {
		if entry := list.named(name); entry != nil {
			return &entry.Class, nil
		}
		return nil, api.Refuse(api.ErrBadRequest, "there is no class %q; %s", name, list.names())
	}
	matched, found := list.routes.Class(key)
	if !found {
		return nil, api.Refuse(api.ErrBadRequest, "no class has a prefix that matches key %.80q; %s", key, list.names())
	}
	return &list.named(matched).Class, nil
}

// Routes returns which keys belong to which class now.
func (r *Registry) Routes() *Routes { return r.current.Load().routes }

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
func (r *Registry) enterClasses(ctx context.Context) error {
	var lost []string
	err := r.catalog.ChangeClasses(ctx, func(records []catalog.Class) (changed []catalog.Class, err error) {
		known, declared, filed := map[string]catalog.Class{}, map[string]string{}, map[string]bool{}
		for i := range r.file {
			for _, prefix := range r.file[i].Prefixes {
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
			case !slices.ContainsFunc(r.file, func(c api.Class) bool { return c.Name == class.Name }):
				class.Prefixes = slices.DeleteFunc(class.Prefixes, func(prefix string) bool { return filed[prefix] })
				earlier = append(earlier, class)
			}
		}
		lost = nil
		for _, class := range append(slices.Clone(r.file), earlier...) {
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
		r.log.Warn("prefixes of the class file belong to classes declared since", "prefixes", strings.Join(lost, ", "))
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

// refresh takes over what the catalog says of the classes.
func (r *Registry) refresh(ctx context.Context) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	was := r.current.Load()
	if was != nil {
		if version, err := r.catalog.ClassesVersion(ctx); err != nil || version == was.version {
			return err
		}
	}
	records, version, err := r.catalog.Classes(ctx)
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
			r.log.Error("a class is left out; a newer release may have written it", "class", record.Name, "cause", err)
			continue
		}
		entry := &Entry{Class: class, origin: api.ClassOrigin(record.Origin)}
		if was != nil {
			if old := was.named(class.Name); old != nil && reflect.DeepEqual(old, entry) {
				entry = old
			}
		}
		fresh.entries = append(fresh.entries, entry)
	}
	slices.SortFunc(fresh.entries, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
	fresh.routes = newRoutes(fresh.entries)
	r.current.Store(fresh)
	r.changed(fresh.entries)
	return nil
}

// Loop takes over changes of classes, of which the catalog tells, for as long as ctx lives.
func (r *Registry) Loop(ctx context.Context) {
	job.Watched(ctx, r.catalog.Watch(ctx, catalog.SubjectClasses), job.Slowly, func(ctx context.Context) error {
		err := r.refresh(ctx)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("looking for changes of classes", "cause", err)
		}
		return err
	})
}

// Classes returns the classes in force, by name.
func (r *Registry) Classes() []api.ClassInfo {
	list := []api.ClassInfo{}
	for _, entry := range r.All() {
		list = append(list, entry.Info(entry.origin))
	}
	return list
}

// PutClass declares a class, new or in place of the one of that name. Groups that exist keep the ladder they were written
// for. A prefix belongs to one class: ErrConflict where another one has it.
func (r *Registry) PutClass(ctx context.Context, spec api.ClassSpec) (api.ClassInfo, error) {
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
	err = r.catalog.ChangeClasses(ctx, func(records []catalog.Class) ([]catalog.Class, error) {
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
	if err := r.refresh(ctx); err != nil {
		return api.ClassInfo{}, err
	}
	r.changed(r.All()) // also where it is declared as it was: who says so wants to see what is
	return class.Info(api.ClassFromAPI), nil
}

// DeleteClass removes a class that no object is of; ErrConflict where there are some, nil where there is no
// such class. A put that is under way meanwhile may still leave an object behind, which stays readable.
func (r *Registry) DeleteClass(ctx context.Context, name string) error {
	if err := r.refresh(ctx); err != nil {
		return err
	}
	if r.current.Load().named(name) == nil {
		return nil
	}
	if err := r.checkUnused(ctx, name); err != nil {
		return err
	}
	err := r.catalog.ChangeClasses(ctx, func(records []catalog.Class) ([]catalog.Class, error) {
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
	return r.refresh(ctx)
}

// checkUnused looks for objects of a class: for groups with something in them first, as they are fewer.
func (r *Registry) checkUnused(ctx context.Context, name string) error {
	used := api.Refuse(api.ErrConflict, "class %q has objects; delete them, or put them anew under another class, first", name)
	for page, err := range r.catalog.GroupSummaries(ctx, block.GroupID{}) {
		if err != nil {
			return err
		}
		for i := range page {
			if page[i].Class != name {
				continue
			}
			view, err := r.catalog.Group(ctx, page[i].ID)
			if err == nil && view.Live > 0 {
				return used
			}
			if err != nil && !errors.Is(err, catalog.ErrNoGroup) {
				return err
			}
		}
	}
	for page, err := range r.catalog.ObjectSummaries(ctx) {
		if err != nil {
			return err
		}
		if slices.ContainsFunc(page, func(object catalog.ObjectSummary) bool { return object.Class == name }) {
			return used
		}
	}
	return nil
}

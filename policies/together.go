package policies

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// together checks objects beside each other and beside those that exist already.
func (l *loader) together(known []Object) {
	l.objects = l.unique()
	t := &together{loader: l, schemes: map[string]stripe.Scheme{}, backends: map[string]*v1alpha1.StorageBackend{}}
	all := merge(known, l.objects)
	for _, object := range all {
		switch value := object.Value.(type) {
		case *v1alpha1.RedundancyScheme:
			if code, is := Code(value.Spec); is {
				t.schemes[object.Name] = code
			} else {
				t.schemes[object.Name] = stripe.Scheme{} // it has a finding of its own
			}
		case *v1alpha1.StorageBackend:
			t.backends[object.Name] = value
		}
	}
	for _, object := range l.objects {
		switch value := object.Value.(type) {
		case *v1alpha1.RedundancyPolicy:
			t.policy(object, &value.Spec)
		case *v1alpha1.Transition:
			t.transition(object, &value.Spec)
		}
	}
	t.claims(all, len(l.objects))
}

// unique drops objects whose kind and name came before, and reports them.
func (l *loader) unique() []Object {
	first := make(map[string]Position)
	var unique []Object
	for _, object := range l.objects {
		if at, twice := first[object.String()]; twice {
			l.findings = append(l.findings, Finding{
				Position: object.At("metadata.name"), Object: object.String(), Path: "metadata.name",
				Message: fmt.Sprintf("is declared already, at %s; give it another name, or take one out", at),
			})
			continue
		}
		first[object.String()] = object.At("metadata.name")
		unique = append(unique, object)
	}
	return unique
}

type together struct {
	*loader
	schemes  map[string]stripe.Scheme // by name; zero for one that is declared wrongly
	backends map[string]*v1alpha1.StorageBackend
}

func (t *together) report(severity Severity, object Object, path, format string, values ...any) {
	t.findings = append(t.findings, Finding{
		Position: object.At(path), Severity: severity, Object: object.String(), Path: path, Message: fmt.Sprintf(format, values...),
	})
}

// Code returns the code that the spec of a RedundancyScheme says, if it is valid.
func Code(spec v1alpha1.RedundancySchemeSpec) (stripe.Scheme, bool) {
	var code stripe.Scheme
	switch {
	case spec.Replicas != nil:
		code = stripe.Replicas(int(*spec.Replicas))
	case spec.K != nil && spec.M != nil:
		code = stripe.RS(int(*spec.K), int(*spec.M))
	case spec.DataChunks != nil && spec.CodingChunks != nil:
		code = stripe.RS(int(*spec.DataChunks), int(*spec.CodingChunks))
	}
	return code, code.Validate() == nil
}

// resolve returns the code that a step names: a declared scheme, or a code itself.
func (t *together) resolve(object Object, path string, name v1alpha1.SchemeName) (stripe.Scheme, bool) {
	if code, declared := t.schemes[string(name)]; declared {
		return code, code != stripe.Scheme{}
	}
	if strings.Contains(string(name), "(") {
		code, err := stripe.ParseScheme(string(name))
		if err == nil {
			err = code.Validate()
		}
		if err != nil {
			t.report(Error, object, path, "%v", err)
		}
		return code, err == nil
	}
	names := make([]string, 0, len(t.schemes))
	for name := range t.schemes {
		names = append(names, name)
	}
	t.report(Error, object, path, "no RedundancyScheme is called %q%s; declare it, or give a code such as rep(3) or rs(4,2)", name, suggest(string(name), names))
	return stripe.Scheme{}, false
}

func (t *together) policy(object Object, spec *v1alpha1.RedundancyPolicySpec) {
	t.backend(object, spec.BackendRef)
	ladder := make(stripe.Ladder, 0, len(spec.Ladder))
	whole := true
	for i, name := range spec.Ladder {
		path := index("spec.ladder", i)
		code, is := t.resolve(object, path, name)
		switch at := slices.Index(ladder, code); {
		case !is:
			whole = false
		case at >= 0 && whole:
			t.report(Error, object, path, "%q is %s, which ladder[%d] is already; a code can be on the ladder once", name, code, at)
			whole = false
		case code == stripe.Replicas(1):
			t.report(Warning, object, path, "keeps no redundancy: a lost node loses the data under it; fine for data that can be made again")
		}
		ladder = append(ladder, code)
	}
	if whole && len(ladder) > 0 {
		t.ladder(object, spec, ladder)
	}
}

// ladder checks that a ladder can be laid out, makes sense in its order, and fits the declared nodes.
func (t *together) ladder(object Object, spec *v1alpha1.RedundancyPolicySpec, ladder stripe.Ladder) {
	const path = "spec.ladder"
	layout, err := stripe.NewLayout(ladder, 0, stripe.ModeFree)
	switch {
	case err != nil:
		t.report(Error, object, path, "cannot be laid out: %v", rootCause(err))
		return
	case layout.Rows > api.MaxRows:
		t.report(Error, object, path, "needs groups of %d rows, at most %d are possible; choose codes whose k divide the widest one, such as 4, 6 and 12", layout.Rows, api.MaxRows)
		return
	}
	for i := 1; i < len(ladder); i++ {
		if ladder[i].Overhead() > ladder[i-1].Overhead() {
			t.report(Warning, object, index(path, i), "%s stores more than %s before it; a ladder goes from the hottest to the coldest step", ladder[i], ladder[i-1])
		}
	}
	backend := t.backends[spec.BackendRef]
	if backend == nil || len(backend.Spec.Nodes) == 0 {
		return
	}
	needed, domains := ladder.Width()+ladder.MaxParity(), make(map[string]bool)
	for _, node := range backend.Spec.Nodes {
		if node.FailureDomain != "" {
			domains[node.FailureDomain] = true
		} else {
			domains["\x00"+node.Name] = true
		}
	}
	switch nodes := len(backend.Spec.Nodes); {
	case needed > nodes:
		t.report(Error, object, path, "needs %d nodes (%d for data, %d for parity), and backend %s declares %d; add nodes, or choose narrower codes",
			needed, ladder.Width(), ladder.MaxParity(), spec.BackendRef, nodes)
	case needed > len(domains):
		t.report(Warning, object, path, "needs %d nodes, and backend %s has %d failure domains: a domain that fails may take several blocks of a stripe; add domains, or choose narrower codes",
			needed, spec.BackendRef, len(domains))
	}
}

// rootCause returns the innermost error that still says the problem: those around it repeat the ladder.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil || errors.Is(inner, stripe.ErrLayout) && errors.Unwrap(inner) == nil || errors.Is(inner, stripe.ErrScheme) && errors.Unwrap(inner) == nil {
			return err
		}
		err = inner
	}
}

func (t *together) transition(object Object, spec *v1alpha1.TransitionSpec) {
	t.backend(object, spec.BackendRef)
	from, isFrom := t.step(object, "spec.from", spec.From)
	to, isTo := t.step(object, "spec.to", spec.To)
	if isFrom && isTo && from == to && spec.From != spec.To {
		t.report(Error, object, "spec.to", "%q is %s, like from; name the scheme to move to", spec.To, to)
	}
}

func (t *together) step(object Object, path string, name v1alpha1.SchemeName) (stripe.Scheme, bool) {
	if name == "" {
		return stripe.Scheme{}, false // it has a finding already
	}
	return t.resolve(object, path, name)
}

// backend warns of a backend that is not declared: it may exist already.
func (t *together) backend(object Object, name string) {
	if name == "" || t.backends[name] != nil {
		return
	}
	names := make([]string, 0, len(t.backends))
	for name := range t.backends {
		names = append(names, name)
	}
	t.report(Warning, object, "spec.backendRef", "no StorageBackend %q is declared here%s; nothing happens until there is one", name, suggest(name, names))
}

// claims reports prefixes and classes that belong to another policy of the same backend: the object that comes later
// gives way. The first of all, declared of them, are those of the sources.
func (t *together) claims(all []Object, declared int) {
	type place struct{ backend, name string }
	classes, prefixes := map[place]Object{}, map[place]Object{}
	// Those that exist already were there before.
	for _, object := range append(slices.Clone(all[declared:]), all[:declared]...) {
		policy, is := object.Value.(*v1alpha1.RedundancyPolicy)
		if !is || policy.Spec.BackendRef == "" {
			continue
		}
		class := place{policy.Spec.BackendRef, policy.Spec.Selector.Class}
		path := "spec.selector.class"
		if class.name == "" {
			class.name, path = object.Name, "metadata.name"
		}
		if other, taken := classes[class]; taken {
			t.report(Error, object, path, "class %q of backend %s belongs to %s%s; give another selector.class", class.name, class.backend, other, declaredAt(other))
		} else {
			classes[class] = object
		}
		t.prefixes(object, policy, func(prefix string) (Object, bool) {
			other, taken := prefixes[place{class.backend, prefix}]
			if !taken {
				prefixes[place{class.backend, prefix}] = object
			}
			return other, taken
		})
	}
}

// prefixes reports prefixes that other policies claimed before, and such as say nothing beside others of the same policy.
func (t *together) prefixes(object Object, policy *v1alpha1.RedundancyPolicy, claim func(string) (Object, bool)) {
	own := policy.Spec.Selector.Prefixes
	for i, prefix := range own {
		path := index("spec.selector.prefixes", i)
		other, taken := claim(prefix)
		switch {
		case taken && other.Name != object.Name:
			t.report(Error, object, path, "prefix %q of backend %s belongs to %s%s; give a longer prefix, or take it out of one of them",
				prefix, policy.Spec.BackendRef, other, declaredAt(other))
		case slices.ContainsFunc(own, func(shorter string) bool { return shorter != prefix && strings.HasPrefix(prefix, shorter) }):
			t.report(Warning, object, path, "prefix %q is covered by a shorter one of the same policy; it matters only if another policy has a prefix in between", prefix)
		}
	}
}

func declaredAt(object Object) string {
	if object.File == "" {
		return ", which exists already"
	}
	return " (" + object.Position.String() + ")"
}

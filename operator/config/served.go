package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// Served compares the definitions that an API server has with those of this release. Where its programs cannot work with them that is an
// error, with the cure. Where one side has fields that the other has not, warnings say so; a server that does not describe its
// fields has none.
func Served(server discovery.DiscoveryInterface) (warnings []string, err error) {
	version := v1alpha1.GroupVersion
	resources, err := server.ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return nil, otherVersions(server)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the API server for the kinds of %s: %w", version, err)
	}
	definitions, err := CRDs()
	if err != nil {
		return nil, err
	}
	var lacking []string
	for _, definition := range definitions {
		kind := definition.Spec.Names.Kind
		if !slices.ContainsFunc(resources.APIResources, func(resource metav1.APIResource) bool { return resource.Kind == kind }) {
			lacking = append(lacking, kind)
		}
	}
	if len(lacking) > 0 {
		return nil, fmt.Errorf("the API server does not know the kinds %s of %s: its definitions are of an earlier release; "+
			"apply those of this one",
			strings.Join(lacking, ", "), version)
	}
	if warnings, err = differences(server, definitions); err != nil {
		warnings = append(warnings, fmt.Sprintf("whether the definitions have the fields of this release is not known: %v", err))
	}
	return warnings, nil
}

// otherVersions says why an API server does not serve the version that this release knows.
func otherVersions(server discovery.DiscoveryInterface) error {
	version := v1alpha1.GroupVersion
	groups, err := server.ServerGroups()
	if err != nil {
		return fmt.Errorf("asking the API server which versions of %s it serves: %w", version.Group, err)
	}
	for _, group := range groups.Groups {
		if group.Name != version.Group {
			continue
		}
		var versions []string
		for _, served := range group.Versions {
			versions = append(versions, served.Version)
		}
		return fmt.Errorf("the API server serves %s as %s, and this release knows %s alone: the definitions are of a newer release; "+
			"run the programs of that one, or apply the definitions of this one",
			version.Group, strings.Join(versions, ", "), version.Version)
	}
	return fmt.Errorf("the API server does not know %s: apply the definitions of this release first, which are in operator/config/crd and "+
		"in the chart", version.Group)
}

// differences says which fields one side has and the other has not.
func differences(
	server discovery.DiscoveryInterface, definitions []*apiextensionsv1.CustomResourceDefinition,
) (warnings []string, err error) {
	paths, err := server.OpenAPIV3().Paths()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking the API server for what describes its kinds: %w", err)
	}
	described, there := paths["apis/"+v1alpha1.GroupVersion.String()]
	if !there {
		return nil, nil
	}
	text, err := described.Schema("application/json")
	if err != nil {
		return nil, fmt.Errorf("reading what the API server says of its kinds: %w", err)
	}
	var document struct {
		Components struct {
			Schemas map[string]apiextensionsv1.JSONSchemaProps `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("decoding what the API server says of its kinds: %w", err)
	}
	for _, definition := range definitions {
		kind := definition.Spec.Names.Kind
		for name, schema := range document.Components.Schemas {
			if !strings.HasSuffix(name, "."+kind) {
				continue
			}
			theirs, ours := fields(&schema), fields(definition.Spec.Versions[0].Schema.OpenAPIV3Schema)
			if more := without(theirs, ours); len(more) > 0 {
				warnings = append(warnings, fmt.Sprintf("the definition of %s is of a newer release than this program, which does not heed: %s",
					kind, strings.Join(more, ", ")))
			}
			if fewer := without(ours, theirs); len(fewer) > 0 {
				warnings = append(warnings, fmt.Sprintf("the definition of %s is of an earlier release than this program, apply that of this one; "+
					"it lacks: %s", kind, strings.Join(fewer, ", ")))
			}
		}
	}
	return warnings, nil
}

// fields returns the paths of all fields of spec and status.
func fields(schema *apiextensionsv1.JSONSchemaProps) map[string]bool {
	paths := map[string]bool{}
	var walk func(path string, schema *apiextensionsv1.JSONSchemaProps)
	walk = func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		for name, property := range schema.Properties {
			paths[path+name] = true
			walk(path+name+".", &property)
		}
		if schema.Items != nil && schema.Items.Schema != nil {
			walk(path, schema.Items.Schema)
		}
	}
	for _, name := range []string{"spec", "status"} {
		property := schema.Properties[name]
		walk(name+".", &property)
	}
	return paths
}

// without returns what is in one set and not in the other, in order, and of a field that is not there only itself.
func without(all, others map[string]bool) (paths []string) {
	for _, path := range slices.Sorted(maps.Keys(all)) {
		inside := len(paths) > 0 && strings.HasPrefix(path, paths[len(paths)-1]+".")
		if !others[path] && !inside {
			paths = append(paths, path)
		}
	}
	return paths
}

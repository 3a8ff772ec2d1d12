// Package config holds what a Kubernetes API server is given to serve Restripe: the CustomResourceDefinitions generated
// from operator/api, and beside them the manifests that run the operator and the console on a cluster.
package config

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed crd/restripe.io_*.yaml
var files embed.FS

// CRDs returns the CustomResourceDefinitions of all kinds, in the order of their names. The caller owns them.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(files, "crd/restripe.io_*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the CustomResourceDefinitions: %w", err)
	}
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, definition); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", name, err)
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}

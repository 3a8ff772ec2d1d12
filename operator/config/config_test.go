package config_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/config"
)

// operatorNamespace is where everything lives that lives in a namespace.
const operatorNamespace = "restripe-system"

// reviewer is Kubernetes' own role for reviewing tokens and rights.
const reviewer = "system:auth-delegator"

type kustomization struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Namespace  string           `json:"namespace"`
	Labels     []map[string]any `json:"labels"`
	Resources  []string         `json:"resources"`
}

func readKustomization(t *testing.T, folder string) *kustomization {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	k := &kustomization{}
	if err := yaml.UnmarshalStrict(text, k); err != nil {
		t.Fatal(err)
	}
	return k
}

// manifests decodes every resource of the kustomization strictly.
func manifests(t *testing.T) []client.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, admissionv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []client.Object
	for _, path := range readKustomization(t, ".").Resources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
		for reader := make([]byte, len(text)); ; {
			count, err := documents.Read(reader)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			object, _, err := decoder.Decode(reader[:count], nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			objects = append(objects, object.(client.Object))
		}
	}
	return objects
}

func find[T client.Object](t *testing.T, objects []client.Object, name string) T {
	t.Helper()
	for _, object := range objects {
		if found, is := object.(T); is && object.GetName() == name {
			return found
		}
	}
	var none T
	t.Fatalf("there is no %T %s", none, name)
	return none
}

func TestKustomizationHasEveryFile(t *testing.T) {
	for _, folder := range []string{".", "crd"} {
		paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var there []string
		for _, path := range paths {
			if name := filepath.Base(path); name != "kustomization.yaml" {
				there = append(there, name)
			}
		}
		listed := readKustomization(t, folder).Resources
		slices.Sort(there)
		slices.Sort(listed)
		if !slices.Equal(there, listed) {
			t.Errorf("the kustomization of %s has %v, there are %v", folder, listed, there)
		}
	}
}

func TestCRDsAreThoseOfTheTypes(t *testing.T) {
	definitions, err := config.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, definition := range definitions {
		kinds = append(kinds, definition.Spec.Names.Kind)
		if definition.Spec.Group != v1alpha1.GroupVersion.Group || definition.Spec.Scope != apiextensionsv1.ClusterScoped {
			t.Errorf("%s is of group %s and scope %s", definition.Name, definition.Spec.Group, definition.Spec.Scope)
		}
		if !slices.Contains(definition.Spec.Names.Categories, "restripe") || len(definition.Spec.Names.ShortNames) == 0 {
			t.Errorf("%s has categories %v and short names %v", definition.Name, definition.Spec.Names.Categories, definition.Spec.Names.ShortNames)
		}
		if definition.Spec.Versions[0].Subresources == nil || definition.Spec.Versions[0].Subresources.Status == nil {
			t.Errorf("%s has no status", definition.Name)
		}
		if !scheme.Recognizes(v1alpha1.GroupVersion.WithKind(definition.Spec.Names.Kind)) {
			t.Errorf("%s has no Go type", definition.Spec.Names.Kind)
		}
	}
	if want := []string{"RedundancyPolicy", "RedundancyScheme", "StorageBackend", "Transition"}; !slices.Equal(kinds, want) {
		t.Errorf("the kinds are %v", kinds)
	}
}

func TestManifestsBelongTogether(t *testing.T) {
	objects := manifests(t)
	if namespace := readKustomization(t, ".").Namespace; namespace != operatorNamespace {
		t.Errorf("the kustomization is for namespace %s", namespace)
	}
	find[*corev1.Namespace](t, objects, operatorNamespace)
	for _, object := range objects {
		if namespace := object.GetNamespace(); namespace != "" && namespace != operatorNamespace {
			t.Errorf("%T %s lives in %s", object, object.GetName(), namespace)
		}
		switch binding := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			if binding.RoleRef.Name != reviewer {
				find[*rbacv1.ClusterRole](t, objects, binding.RoleRef.Name)
			}
			checkSubjects(t, objects, binding.Subjects)
		case *rbacv1.RoleBinding:
			find[*rbacv1.Role](t, objects, binding.RoleRef.Name)
			checkSubjects(t, objects, binding.Subjects)
		}
	}
	deployment := find[*appsv1.Deployment](t, objects, "restripe-operator")
	find[*corev1.ServiceAccount](t, objects, deployment.Spec.Template.Spec.ServiceAccountName)
	if args := deployment.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--lease-namespace="+operatorNamespace) {
		t.Errorf("the operator runs as %v, its Role is for %s", args, operatorNamespace)
	}
	console := find[*appsv1.StatefulSet](t, objects, "restripe-console")
	find[*corev1.ServiceAccount](t, objects, console.Spec.Template.Spec.ServiceAccountName)
	container := console.Spec.Template.Spec.Containers[0]
	beyond := func(arg string) bool { return strings.HasPrefix(arg, "--listen") } // else it serves within its pod alone
	if !slices.Contains(container.Args, "--cluster-users") || slices.ContainsFunc(container.Args, beyond) {
		t.Errorf("the console runs as %v", container.Args)
	}
	if *console.Spec.Replicas != 1 || container.VolumeMounts[0].Name != console.Spec.VolumeClaimTemplates[0].Name {
		t.Errorf("%d consoles keep their logs in %v", *console.Spec.Replicas, container.VolumeMounts)
	}
}

func checkSubjects(t *testing.T, objects []client.Object, subjects []rbacv1.Subject) {
	t.Helper()
	if len(subjects) != 1 || subjects[0].Namespace != operatorNamespace {
		t.Errorf("bound to %v", subjects)
	}
	find[*corev1.ServiceAccount](t, objects, subjects[0].Name)
}

// TestProgramsMayLittle: no wildcards, and only the groups they have to do with.
func TestProgramsMayLittle(t *testing.T) {
	objects := manifests(t)
	rules := slices.Concat(find[*rbacv1.ClusterRole](t, objects, "restripe-operator").Rules, find[*rbacv1.Role](t, objects, "restripe-operator-election").Rules,
		find[*rbacv1.ClusterRole](t, objects, "restripe-console").Rules)
	known := []string{"", "restripe.io", "events.k8s.io", "coordination.k8s.io"}
	for _, rule := range rules {
		for _, values := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
			if slices.Contains(values, "*") || len(values) == 0 {
				t.Errorf("%v allows everything", rule)
			}
		}
		for _, group := range rule.APIGroups {
			if group == "" && !slices.Equal(rule.Resources, []string{"events"}) {
				t.Errorf("%v is for the core of Kubernetes", rule)
			}
			if !slices.Contains(known, group) {
				t.Errorf("%v is for another group", rule)
			}
		}
		for _, forbidden := range []string{"deletecollection", "escalate", "bind", "impersonate"} {
			if slices.Contains(rule.Verbs, forbidden) {
				t.Errorf("%v allows %s", rule, forbidden)
			}
		}
	}
}

// Every field of every kind says what it is, as `kubectl explain` shows it.
func TestEveryFieldIsDescribed(t *testing.T) {
	definitions, err := config.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	var walk func(path string, schema *apiextensionsv1.JSONSchemaProps)
	walk = func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		for name, field := range schema.Properties {
			count++
			if field.Description == "" {
				t.Errorf("%s.%s has no description: write one before the field in operator/api/v1alpha1, and make generate", path, name)
			}
			walk(path+"."+name, &field)
		}
		if schema.Items != nil && schema.Items.Schema != nil {
			walk(path, schema.Items.Schema)
		}
	}
	for _, definition := range definitions {
		for _, version := range definition.Spec.Versions {
			for _, part := range []string{"spec", "status"} {
				field := version.Schema.OpenAPIV3Schema.Properties[part]
				walk(definition.Spec.Names.Singular+"."+part, &field)
			}
		}
	}
	if count < 200 {
		t.Errorf("only %d fields were looked at", count)
	}
}

package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/restripe/restripe/operator/config"
)

// installer is the field owner of the definitions.
const installer = "restripe-apiserver"

// pollInterval is how often it is looked whether the server is as far as it must be; it tells nobody.
const pollInterval = 20 * time.Millisecond

// install declares all kinds, as they are in this program, and returns when they are served.
func (s *Server) install(ctx context.Context) error {
	definitions, err := config.CRDs()
	if err != nil {
		return err
	}
	clients, err := clientset.NewForConfig(s.config)
	if err != nil {
		return fmt.Errorf("installing the kinds: %w", err)
	}
	if err := s.until(ctx, "is ready", func(ctx context.Context) error {
		return clients.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}); err != nil {
		return err
	}
	for _, definition := range definitions {
		if err := apply(ctx, clients, definition); err != nil {
			return err
		}
	}
	return s.until(ctx, "serves all kinds", func(ctx context.Context) error { return s.serves(ctx, clients.Discovery(), definitions) })
}

func apply(ctx context.Context, clients clientset.Interface, definition *apiextensionsv1.CustomResourceDefinition) error {
	definition.TypeMeta = metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"}
	text, err := json.Marshal(definition)
	if err != nil {
		return fmt.Errorf("encoding the kind %s: %w", definition.Spec.Names.Kind, err)
	}
	force := true
	_, err = clients.ApiextensionsV1().CustomResourceDefinitions().Patch(ctx, definition.Name, types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: installer, Force: &force})
	if err != nil {
		return fmt.Errorf("installing the kind %s: %w", definition.Spec.Names.Kind, err)
	}
	return nil
}

// serves tells whether clients find all kinds and can list their objects.
func (s *Server) serves(ctx context.Context, finder discovery.DiscoveryInterface, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	objects, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return err
	}
	_, resources, err := finder.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	found := map[schema.GroupVersionResource]bool{}
	for _, list := range resources {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, resource := range list.APIResources {
			found[version.WithResource(resource.Name)] = true
		}
	}
	for _, definition := range definitions {
		resource := schema.GroupVersionResource{Group: definition.Spec.Group, Version: definition.Spec.Versions[0].Name, Resource: definition.Spec.Names.Plural}
		if !found[resource] {
			return fmt.Errorf("%s is not among the kinds yet", resource)
		}
		if _, err := objects.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
	}
	return nil
}

// until tries until the server does what is waited for, has ended, or the time for the start is over.
func (s *Server) until(ctx context.Context, what string, try func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.served:
			return false, errors.Join(errors.New("it ended"), s.err)
		default:
			last = try(ctx)
			return last == nil, nil
		}
	})
	if err != nil {
		return fmt.Errorf("waiting until the API server %s: %w", what, errors.Join(err, last))
	}
	return nil
}

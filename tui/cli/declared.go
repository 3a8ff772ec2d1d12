package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/local"
	"github.com/restripe/restripe/tui/cli/program"
)

// fieldOwner is the name under which the command line applies and changes declared objects.
const fieldOwner = "restripe-cli"

// declaredKind is one kind of declared objects and what people call it.
type declaredKind struct {
	kind  string
	words []string // the first is the one that is shown
	empty string   // what to do first, where there are none
}

var declaredKinds = []*declaredKind{
	{"RedundancyPolicy", []string{"policy", "policies", "rp", "redundancypolicy", "redundancypolicies"},
		"There are no policies. Declare one with `restripe apply -f FILE`."},
	{"Transition", []string{"transition", "transitions", "tr"},
		"There are no transitions. Policies make them when something has to move."},
	{"StorageBackend", []string{"backend", "backends", "sb", "storagebackend", "storagebackends"},
		"There are no backends. `restripe up` declares its own; others come with `restripe apply -f FILE`."},
	{"RedundancyScheme", []string{"scheme", "schemes", "rs", "redundancyscheme", "redundancyschemes"},
		"There are no schemes. Policies may also name codes such as rs(4,2) directly."},
}

// kindNamed returns the kind that a word names, in any case, or nil.
func kindNamed(word string) *declaredKind {
	for _, kind := range declaredKinds {
		if slices.Contains(kind.words, strings.ToLower(word)) {
			return kind
		}
	}
	return nil
}

// kindOf returns the kind of an object; all that this program reads or writes are known.
func kindOf(name string) *declaredKind {
	return declaredKinds[slices.IndexFunc(declaredKinds, func(kind *declaredKind) bool { return kind.kind == name })]
}

// plural returns the name under which an API server has the objects of the kind.
func (k *declaredKind) plural() string { return v1alpha1.Kinds[k.kind] }

// String returns the word for one object of the kind.
func (k *declaredKind) String() string { return k.words[0] }

// object returns an empty object of the kind.
func (k *declaredKind) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(k.kind))
	return object
}

// kindWords lists the plurals, for help texts and complaints.
func kindWords() string {
	words := make([]string, len(declaredKinds))
	for i, kind := range declaredKinds {
		words[i] = kind.words[1]
	}
	return strings.Join(words, ", ")
}

// parseKind is kindNamed for an argument that must be a kind.
func parseKind(command *cobra.Command, word string) (*declaredKind, error) {
	kind := kindNamed(word)
	if kind == nil {
		return nil, program.Misuse(command, "there is no kind %q; there are %s", word, kindWords())
	}
	return kind, nil
}

// serverFlags say which API server is meant.
type serverFlags struct {
	kubeconfig, context string
	plugin              bool // of kubectl: what kubectl reads comes before what `restripe up` has left
}

// serverFlags adds --kubeconfig and --context and returns where their values will be.
func (s *session) serverFlags(command *cobra.Command) *serverFlags {
	where, otherwise := &serverFlags{plugin: s.plugin}, "$KUBECONFIG, else that of 'restripe up'"
	if s.plugin {
		otherwise = "$KUBECONFIG, else ~/.kube/config, else that of 'restripe up'"
	}
	command.Flags().StringVar(&where.kubeconfig, "kubeconfig", "", "kubeconfig of the API server (default "+otherwise+")")
	command.Flags().StringVar(&where.context, "context", "", "context of the kubeconfig (default its current one)")
	return where
}

// errNoServer says that nothing names an API server.
var errNoServer = errors.New("no API server is named")

// apiServer is an API server with declared objects.
type apiServer struct {
	client.Client
	config *rest.Config
}

// stateDirectory is where `restripe up` keeps everything unless told otherwise.
func stateDirectory() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("choosing a state directory: %w; give one with --dir", err)
	}
	return filepath.Join(cache, "restripe"), nil
}

// restConfig finds an API server: by the flag, by KUBECONFIG, for a plugin where kubectl looks, or as the one that `restripe up` runs.
func (f *serverFlags) restConfig() (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{}
	switch paths := filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)); {
	case f.kubeconfig != "":
		rules.ExplicitPath = f.kubeconfig
	case len(paths) > 0:
		rules.Precedence = paths
	case f.plugin && isFile(clientcmd.RecommendedHomeFile):
		rules.ExplicitPath = clientcmd.RecommendedHomeFile
	default:
		directory, err := stateDirectory()
		if err != nil {
			return nil, fmt.Errorf("%w and %w", errNoServer, err)
		}
		path := local.Kubeconfig(directory)
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%w and `restripe up` has left none (%w): start it, or name a server with --kubeconfig or KUBECONFIG", errNoServer, err)
		}
		rules.ExplicitPath = path
	}
	chosen := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, chosen).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.UserAgent = "restripe"
	config.QPS = -1 // one command asks little; the server has its own limits
	return config, nil
}

// isFile reports whether a file can be looked at.
func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// apiServer returns a client of the API server.
func (s *session) apiServer(where *serverFlags) (*apiServer, error) {
	config, err := where.restConfig()
	if err != nil {
		return nil, err
	}
	return newAPIServer(config)
}

func newAPIServer(config *rest.Config) (*apiServer, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds: %w", err)
	}
	// The kinds are known, so the server need not be asked for them.
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	for kind, plural := range v1alpha1.Kinds {
		mapper.AddSpecific(v1alpha1.GroupVersion.WithKind(kind), v1alpha1.GroupVersion.WithResource(plural),
			v1alpha1.GroupVersion.WithResource(strings.ToLower(kind)), meta.RESTScopeRoot)
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", config.Host, err)
	}
	return &apiServer{Client: c, config: config}, nil
}

// explain puts an error of the API server into words that say what to do.
func (a *apiServer) explain(err error) error {
	var transport *url.Error
	var status *apierrors.StatusError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server at %s does not know the token of the kubeconfig: take the kubeconfig it wrote", a.config.Host)
	case errors.As(err, &transport):
		var refused *net.OpError
		if errors.As(err, &refused) {
			return fmt.Errorf("no API server answers at %s: %w; start it with `restripe up`, or name another with --kubeconfig or KUBECONFIG", a.config.Host, refused)
		}
		return fmt.Errorf("asking the API server at %s: %w", a.config.Host, transport.Err)
	case meta.IsNoMatchError(err), errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Name == "":
		return fmt.Errorf("the API server at %s does not know the kinds of Restripe: "+
			"install them with `kubectl apply --server-side -k operator/config/crd`", a.config.Host)
	}
	return err
}

// read fills an object that must be there.
func (a *apiServer) read(ctx context.Context, kind *declaredKind, name string, object client.Object) error {
	err := a.Get(ctx, client.ObjectKey{Name: name}, object)
	var status *apierrors.StatusError
	if errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Name != "" {
		return fmt.Errorf("there is no %s %q; `restripe get %s` lists them", kind, name, kind.words[1])
	}
	return a.explain(err)
}

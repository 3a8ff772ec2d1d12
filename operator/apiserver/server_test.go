package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/restripe/restripe/operator/apiserver"
)

func start(t *testing.T, options apiserver.Options) *apiserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, err := apiserver.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	return server
}

func stop(t *testing.T, server *apiserver.Server) {
	t.Helper()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
}

func TestRestartKeepsObjectsAddressAndToken(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	first := start(t, apiserver.Options{Directory: directory})
	client := policies(t, first.RESTConfig())
	if err := createPolicy(t.Context(), client, "media"); err != nil {
		t.Fatal(err)
	}
	before := configOf(t, directory)
	stop(t, first)
	if _, err := client.Get(t.Context(), "media", metav1.GetOptions{}); err == nil {
		t.Error("a stopped server answers")
	}
	start(t, apiserver.Options{Directory: directory})
	after := configOf(t, directory)
	if before.Host != after.Host || before.BearerToken != after.BearerToken || string(before.CAData) != string(after.CAData) {
		t.Error("the kubeconfig changes from one start to the next")
	}
	if _, err := client.Get(t.Context(), "media", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestRestartInstallsTheKindsOfThisProgram(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	first := start(t, apiserver.Options{Directory: directory})
	definitions := clientset.NewForConfigOrDie(first.RESTConfig()).ApiextensionsV1().CustomResourceDefinitions()
	const name = "transitions.restripe.io"
	older := []byte(`[{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns"}]`)
	if _, err := definitions.Patch(t.Context(), name, types.JSONPatchType, older, metav1.PatchOptions{FieldManager: "older"}); err != nil {
		t.Fatal(err)
	}
	stop(t, first)
	start(t, apiserver.Options{Directory: directory})
	definition, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(definition.Spec.Versions[0].AdditionalPrinterColumns) < 4 {
		t.Error("a kind stays as an older program left it")
	}
}

func TestStopEndsWatches(t *testing.T) {
	t.Parallel()
	server := start(t, apiserver.Options{Directory: t.TempDir()})
	watcher, err := policies(t, server.RESTConfig()).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stop(t, server)
	for range watcher.ResultChan() {
		t.Error("an event out of nothing")
	}
	select {
	case <-server.Done():
	default:
		t.Error("stopped, but not done")
	}
	stop(t, server)
}

func TestOneDirectoryOneServer(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	start(t, apiserver.Options{Directory: directory})
	_, err := apiserver.Start(t.Context(), apiserver.Options{Directory: directory})
	if !errors.Is(err, apiserver.ErrInUse) || !strings.Contains(err.Error(), directory) {
		t.Errorf("a second server on the directory: %v", err)
	}
}

func TestServersBesideEachOther(t *testing.T) {
	t.Parallel()
	one := start(t, apiserver.Options{Directory: t.TempDir()})
	other := start(t, apiserver.Options{Directory: t.TempDir()})
	if err := createPolicy(t.Context(), policies(t, one.RESTConfig()), "media"); err != nil {
		t.Fatal(err)
	}
	_, err := policies(t, other.RESTConfig()).Get(t.Context(), "media", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("one server has the objects of the other: %v", err)
	}
	mixed := one.RESTConfig()
	mixed.BearerToken = other.RESTConfig().BearerToken
	if _, err := policies(t, mixed).List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("one server takes the token of the other: %v", err)
	}
}

func TestPortTakenByAnother(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	first := start(t, apiserver.Options{Directory: directory})
	address := strings.TrimPrefix(first.RESTConfig().Host, "https://")
	stop(t, first)
	other := start(t, apiserver.Options{Directory: t.TempDir(), Listen: address})
	again := start(t, apiserver.Options{Directory: directory})
	if again.RESTConfig().Host == other.RESTConfig().Host {
		t.Error("two servers at one address")
	}
	if _, err := policies(t, configOf(t, directory)).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("by the kubeconfig: %v", err)
	}
	_, err := apiserver.Start(t.Context(), apiserver.Options{Directory: t.TempDir(), Listen: address})
	if err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("an address that is taken: %v", err)
	}
}

func TestListenAddresses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ listen, says string }{
		{"0.0.0.0:0", "can be reached from other machines"},
		{":0", "can be reached from other machines"},
		{"[::]:0", "can be reached from other machines"},
		{"192.0.2.1:0", "can be reached from other machines"},
		{"127.0.0.1", "give host:port"},
		{"example.com:0", "IP address or localhost"},
		{"127.0.0.1:http-and-more", "127.0.0.1:http-and-more"},
	} {
		directory := filepath.Join(t.TempDir(), "state")
		_, err := apiserver.Start(t.Context(), apiserver.Options{Directory: directory, Listen: test.listen})
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("listening on %s: %v", test.listen, err)
		}
		if _, err := os.Stat(directory); err == nil {
			t.Errorf("listening on %s is refused after the directory is made", test.listen)
		}
	}
	remote := start(t, apiserver.Options{Directory: t.TempDir(), Listen: "0.0.0.0:0", AllowRemote: true})
	if _, err := policies(t, remote.RESTConfig()).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("listening on all addresses: %v", err)
	}
}

func TestDirectoryIsForThisUserAlone(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "a", "b")
	server := start(t, apiserver.Options{Directory: directory})
	if server.Kubeconfig() != filepath.Join(directory, "kubeconfig") {
		t.Errorf("the kubeconfig is %s", server.Kubeconfig())
	}
	err := filepath.WalkDir(directory, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if path == directory && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && filepath.Dir(path) == directory {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestBadDirectories(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ directory, says string }{
		{"", "needs a directory"},
		{file, "not a directory"},
		{filepath.Join(t.TempDir(), strings.Repeat("long", 30)), "shorter path"},
	} {
		_, err := apiserver.Start(t.Context(), apiserver.Options{Directory: test.directory})
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v", test.directory, err)
		}
	}
}

func TestTornFilesAreReplaced(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	first := start(t, apiserver.Options{Directory: directory})
	if err := createPolicy(t.Context(), policies(t, first.RESTConfig()), "media"); err != nil {
		t.Fatal(err)
	}
	stop(t, first)
	for _, name := range []string{"token", "certificate.pem", "key.pem", "port", "kubeconfig", "lock"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte("to"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	second := start(t, apiserver.Options{Directory: directory})
	if second.RESTConfig().BearerToken == "to" {
		t.Error("a torn token is a token")
	}
	if _, err := policies(t, configOf(t, directory)).Get(t.Context(), "media", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheTokenOpens(t *testing.T) {
	t.Parallel()
	server := start(t, apiserver.Options{Directory: t.TempDir()})
	stranger := rest.AnonymousClientConfig(server.RESTConfig())
	client, err := rest.HTTPClientFor(stranger)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/apis", "/apis/restripe.io/v1alpha1/transitions", "/readyz", "/metrics", "/version", "/openapi/v3"} {
		response, err := client.Get(stranger.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a token: %s", path, response.Status)
		}
	}
}

// Clients that would record Events or hold Leases are told that there are none, and not of a fault of the server.
func TestNoEventsAndLeases(t *testing.T) {
	t.Parallel()
	clients := kubernetes.NewForConfigOrDie(start(t, apiserver.Options{Directory: t.TempDir()}).RESTConfig())
	_, core := clients.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	_, events := clients.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
	_, leases := clients.CoordinationV1().Leases("default").List(t.Context(), metav1.ListOptions{})
	_, group := clients.Discovery().ServerResourcesForGroupVersion("events.k8s.io/v1")
	for _, err := range []error{core, events, leases, group} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("of what is not there the server says: %v", err)
		}
	}
}

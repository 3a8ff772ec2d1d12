package apiserver

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	extensionoptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	generic "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	openapifilter "k8s.io/apiserver/pkg/util/openapi"
)

// stopPatience bounds how long the end of the server waits for requests that run.
const stopPatience = 5 * time.Second

// newCRDServer makes the server of CustomResourceDefinitions and their objects, kept in the etcd at etcdURL and served
// on the listener. The function it returns serves until its context ends and closes the listener then.
func newCRDServer(etcdURL string, listener net.Listener, identity *identity) (func(context.Context) error, error) {
	options := extensionoptions.NewCustomResourceDefinitionsServerOptions(io.Discard, io.Discard)
	recommended := options.RecommendedOptions
	recommended.Etcd.StorageConfig.Transport.ServerList = []string{etcdURL}
	recommended.Features.EnablePriorityAndFairness = false
	recommended.Features.EnableProfiling = false
	recommended.SecureServing.Listener = listener
	options.ServerRunOptions.ShutdownWatchTerminationGracePeriod = stopPatience // 0 would leave watches to their clients
	certificate, err := dynamiccertificates.NewStaticCertKeyContent("restripe", identity.certificate, identity.key)
	if err != nil {
		return nil, fmt.Errorf("using the certificate: %w", err)
	}
	recommended.SecureServing.ServerCert.GeneratedCert = certificate

	config, err := newConfig(options, identity.token)
	if err != nil {
		return nil, fmt.Errorf("configuring the server: %w", err)
	}
	discovery := &discoveryHandler{}
	chain := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(next http.Handler, c *generic.Config) http.Handler {
		discovery.next = next
		return chain(discovery, c)
	}
	complete := (&extensions.Config{GenericConfig: config, ExtraConfig: extensions.ExtraConfig{
		CRDRESTOptionsGetter: extensionoptions.NewCRDRESTOptionsGetter(*recommended.Etcd, config.ResourceTransformers, config.StorageObjectCountTracker),
		ServiceResolver:      noServices{},
	}}).Complete()
	server, err := complete.New(generic.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("making the server: %w", err)
	}
	server.GenericAPIServer.ShutdownTimeout = stopPatience
	groups := server.GenericAPIServer.AggregatedDiscoveryGroupManager
	discovery.groups = aggregated.WrapAggregatedDiscoveryToHandler(server.GenericAPIServer.DiscoveryGroupManager, groups, groups)
	return server.GenericAPIServer.PrepareRun().RunWithContext, nil
}

// newConfig does what options.Config does, for a server without the core kinds, which that one takes for granted.
func newConfig(options *extensionoptions.CustomResourceDefinitionsServerOptions, token string) (*generic.RecommendedConfig, error) {
	config := generic.NewRecommendedConfig(extensions.Codecs)
	recommended := options.RecommendedOptions
	err := errors.Join(
		options.Complete(),
		options.ServerRunOptions.ApplyTo(&config.Config),
		recommended.Etcd.ApplyTo(&config.Config),
		recommended.SecureServing.ApplyTo(&config.SecureServing, &config.LoopbackClientConfig),
		recommended.Features.ApplyTo(&config.Config, nil, nil),
		options.APIEnablement.ApplyTo(&config.Config, extensions.DefaultAPIResourceConfigSource(), extensions.Scheme),
	)
	if err != nil {
		return nil, err
	}
	config.Authentication.Authenticator = bearertoken.New(holderOf(token))
	// The server is a client of itself, with a token of its own.
	generic.AuthorizeClientBearerToken(config.LoopbackClientConfig, &config.Authentication, &config.Authorization)
	config.AdmissionControl = guard{}
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	definitions := openapifilter.GetOpenAPIDefinitionsWithoutDisabledFeatures(openapi.GetOpenAPIDefinitions)
	config.OpenAPIConfig = generic.DefaultOpenAPIConfig(definitions, openapinamer.NewDefinitionNamer(extensions.Scheme))
	config.OpenAPIV3Config = generic.DefaultOpenAPIV3Config(definitions, openapinamer.NewDefinitionNamer(extensions.Scheme))
	return config, nil
}

// holderOf knows one token, whose holder may do everything.
func holderOf(token string) authenticator.Token {
	holder := &user.DefaultInfo{Name: "restripe:admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	return authenticator.TokenFunc(func(_ context.Context, given string) (*authenticator.Response, bool, error) {
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			return nil, false, nil
		}
		return &authenticator.Response{User: holder}, true, nil
	})
}

// discoveryHandler answers which groups there are. The server of CustomResourceDefinitions leaves that to an aggregator
// in front of it, which is not here.
type discoveryHandler struct {
	groups, next http.Handler
}

func (h *discoveryHandler) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	switch strings.TrimSuffix(request.URL.Path, "/") {
	case "/apis":
		h.groups.ServeHTTP(response, request)
	case "/api":
		response.Header().Set("Content-Type", "application/json")
		response.WriteHeader(http.StatusNotFound)
		fmt.Fprint(response, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"NotFound","code":404,`+
			`"message":"the core kinds of Kubernetes are not served here"}`)
	default:
		h.next.ServeHTTP(response, request)
	}
}

// noServices resolves the Services of conversion webhooks, which no kind has.
type noServices struct{}

func (noServices) ResolveEndpoint(namespace, name string, _ int32) (*url.URL, error) {
	return nil, fmt.Errorf("resolving the Service %s/%s: there are no Services here", namespace, name)
}

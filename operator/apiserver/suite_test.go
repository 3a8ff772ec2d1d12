package apiserver_test

import (
	"flag"
	"testing"

	"github.com/restripe/restripe/operator/api/apitest"
	"github.com/restripe/restripe/operator/apiserver"
)

var rewrite = flag.Bool("rewrite", false, "write what the server answers into ../api/apitest/testdata")

func TestSuite(t *testing.T) {
	t.Parallel()
	server := start(t, apiserver.Options{Directory: t.TempDir()})
	apitest.Run(t, apitest.Options{Config: server.RESTConfig(), Testdata: "../api/apitest/testdata", Rewrite: *rewrite})
}

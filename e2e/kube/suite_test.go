package kube_test

import (
	"testing"

	"github.com/restripe/restripe/operator/api/apitest"
)

func TestSuite(t *testing.T) {
	kubernetes := startKubernetes(t)
	kubernetes.install(t)
	apitest.Run(t, apitest.Options{Config: kubernetes.config, Testdata: "../../operator/api/apitest/testdata"})
}

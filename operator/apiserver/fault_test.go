package apiserver

import (
	"testing"
	"time"
)

// A server whose etcd ends is at an end itself, and says so.
func TestEndOfEtcdEndsTheServer(t *testing.T) {
	t.Parallel()
	server, err := Start(t.Context(), Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	server.etcd.Server.Stop()
	select {
	case <-server.Done():
	case <-time.After(time.Minute):
		t.Fatal("the server goes on without etcd")
	}
	if err := server.Stop(); err == nil {
		t.Error("a fault is not told")
	}
}

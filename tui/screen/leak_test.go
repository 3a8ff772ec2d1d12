package screen_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
	"github.com/restripe/restripe/tui/screen"
	"github.com/restripe/restripe/tui/screen/drive"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// endless is a console that knows no more than watches that never end.
type endless struct {
	consolev1connect.UnimplementedConsoleHandler
}

func (endless) WatchOverview(ctx context.Context, _ *consolev1.WatchOverviewRequest, stream *connect.ServerStream[consolev1.Overview]) error {
	if err := stream.Send(&consolev1.Overview{Safety: consolev1.Safety_SAFETY_EMPTY, SafetyLine: "Nothing is stored."}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (endless) WatchNodes(ctx context.Context, _ *consolev1.WatchNodesRequest, stream *connect.ServerStream[consolev1.NodeList]) error {
	if err := stream.Send(&consolev1.NodeList{Whole: true, Nodes: []*consolev1.Node{{Backend: "b", Name: "n1", State: "up"}}}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestNothingIsLeft: a person who quits while watches run and calls are under way leaves nothing running.
func TestNothingIsLeft(t *testing.T) {
	before := goleak.IgnoreCurrent()
	mux := http.NewServeMux()
	mux.Handle(consolev1connect.NewConsoleHandler(endless{}))
	server := httptest.NewServer(mux)
	client, connections, err := screen.Dial(server.URL, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := drive.Start(context.Background(), screen.Options{Client: client, Address: server.URL}, 80, 24, discard{})
	if err != nil {
		t.Fatal(err)
	}
	script := drive.Script{Patience: patience}
	if err := script.Run(t.Context(), s, "wait Nothing is stored.\nkeys :no<enter>\nwait n1\nkeys :au<enter>\nwait no console that can do this\nkeys q"); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := connections.Close(); err != nil {
		t.Fatal(err)
	}
	server.Close()
	for tries := 0; ; tries++ { // the clock's last tick takes a second to pass
		err := goleak.Find(before)
		if err == nil {
			return
		}
		if tries == 5 {
			t.Fatal(err)
		}
	}
}

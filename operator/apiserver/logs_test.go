package apiserver

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// What gRPC says of connections reaches nobody, whose libraries would write it to standard error.
func TestGRPCIsSilent(t *testing.T) {
	state := klog.CaptureState()
	defer state.Restore()
	said := &bytes.Buffer{}
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(said, nil)))
	grpclog.Warning("a connection could not be made")
	grpclog.Error("nor this one")
	klog.Flush()
	if said.Len() > 0 {
		t.Errorf("it says %q", said)
	}
}

func TestWhatEtcdSays(t *testing.T) {
	said := &bytes.Buffer{}
	log, level := memberLog(slog.New(slog.NewTextHandler(said, nil)))
	log = log.With(zap.String("member", "one"))
	for _, test := range []struct {
		what   string
		now    func()
		warns  bool
		errors bool
	}{
		{"while it starts", func() {}, false, true},
		{"while it runs", func() { level.SetLevel(whileRunning) }, true, true},
		{"while it ends", func() { level.SetLevel(whileEnding) }, false, false},
	} {
		test.now()
		said.Reset()
		log.Info("news")
		log.Warn("a warning", zap.Int("bytes", 7))
		log.Error("an error")
		text := said.String()
		if warned := strings.Contains(text, `level=WARN msg="etcd: a warning"`) && strings.Contains(text, "member=one") && strings.Contains(text, "bytes=7"); warned != test.warns {
			t.Errorf("%s, of a warning it says: %s", test.what, text)
		}
		if complained := strings.Contains(text, `level=ERROR msg="etcd: an error"`); complained != test.errors {
			t.Errorf("%s, of an error it says: %s", test.what, text)
		}
		if strings.Contains(text, "news") {
			t.Errorf("%s it tells news: %s", test.what, text)
		}
	}
}

func TestFatalForEtcdIsNotTheEndOfTheProcess(t *testing.T) {
	log, _ := memberLog(slog.New(slog.DiscardHandler))
	defer func() {
		if recover() == nil {
			t.Error("nothing came up")
		}
	}()
	log.Fatal("the end")
}

func TestQuietHandler(t *testing.T) {
	said := &bytes.Buffer{}
	log := slog.New(quietHandler{slog.NewTextHandler(said, nil)}).With("a", 1).WithGroup("b")
	log.Info("news")
	log.Warn("a warning", "c", 2)
	if text := said.String(); strings.Contains(text, "news") || !strings.Contains(text, `msg="a warning" a=1 b.c=2`) {
		t.Error(text)
	}
}

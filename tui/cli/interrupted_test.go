package cli

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/restripe/restripe/tui/cli/program"
)

// TestInterruptedCommandsSaySo: what is interrupted is neither done nor wrong.
func TestInterruptedCommandsSaySo(t *testing.T) {
	asked, release := make(chan struct{}, 1), make(chan struct{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	})}
	go func() { _ = server.Serve(listener) }()
	defer func() {
		close(release)
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	var out, messages bytes.Buffer
	code := execute(ctx, []string{"status", "--gateway", listener.Addr().String()}, strings.NewReader(""), &out, &messages)
	if code != program.ExitFailed || messages.String() != "restripe: interrupted\n" || out.Len() > 0 {
		t.Errorf("exit code %d: %q", code, messages.String())
	}
}

func TestLocales(t *testing.T) {
	for _, c := range []struct {
		all, kind, lang string
		unicode         bool
	}{
		{"", "", "", true}, {"", "", "en_US.UTF-8", true}, {"C", "", "en_US.UTF-8", false}, {"", "C.utf8", "C", true},
		{"", "", "de_DE.ISO-8859-1", false}, {"POSIX", "", "", false},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", c.kind)
		t.Setenv("LANG", c.lang)
		if have := unicodeTerminal(); have != c.unicode {
			t.Errorf("%+v: %t", c, have)
		}
	}
}

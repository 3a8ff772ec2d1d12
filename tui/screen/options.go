package screen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"connectrpc.com/connect"

	tea "charm.land/bubbletea/v2"

	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
)

// Options say what a screen shows and how. Client and Address are required.
type Options struct {
	Client  consolev1connect.ConsoleClient
	Address string // of the console, as messages call it

	ReadOnly bool // refuse every change
	NoColor  bool
	ASCII    bool // draw with characters that every terminal has

	// Edit returns what lets a person edit a file, such as the editor that they chose; nil: nothing can be edited.
	Edit func(path string) (tea.ExecCommand, error)

	Now func() time.Time // default: time.Now
}

// Run shows the screen until the person quits or the context ends.
func Run(ctx context.Context, options Options, program ...tea.ProgramOption) error {
	model := New(ctx, options)
	defer model.Close()
	_, err := tea.NewProgram(model, append([]tea.ProgramOption{tea.WithContext(ctx)}, program...)...).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("showing the screen: %w", err)
	}
	return nil
}

// Dial returns a client of the console at an address, host:port or a URL, that sends a token with every call unless it is
// empty. believed says whom to believe who serves over TLS; nil: the authorities of the system. Nothing is sent yet; closer drops the connections.
func Dial(address, token string, believed *tls.Config) (client consolev1connect.ConsoleClient, closer io.Closer, err error) {
	url, err := consoleURL(address)
	if err != nil {
		return nil, nil, err
	}
	transport := &http.Transport{IdleConnTimeout: idleTimeout, ForceAttemptHTTP2: true, TLSClientConfig: believed}
	var options []connect.ClientOption
	if token != "" {
		options = append(options, connect.WithInterceptors(bearerToken(token)))
	}
	return consolev1connect.NewConsoleClient(&http.Client{Transport: transport}, url, options...), idleCloser{transport}, nil
}

// idleTimeout is how long a connection waits for the next call.
const idleTimeout = time.Minute

type idleCloser struct{ transport *http.Transport }

func (c idleCloser) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

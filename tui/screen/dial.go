package screen

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"connectrpc.com/connect"
)

// consoleURL is the base of the calls to a console.
func consoleURL(address string) (string, error) {
	if strings.Contains(address, "://") {
		parsed, err := url.Parse(address)
		if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
			return "", fmt.Errorf("console %q: want host:port, or a URL such as https://console.example", address)
		}
		return strings.TrimSuffix(address, "/"), nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return "", fmt.Errorf("console %q: want host:port, or a URL such as https://console.example", address)
	}
	return "http://" + address, nil
}

// bearerToken says with every call who makes it.
type bearerToken string

func (b bearerToken) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		request.Header().Set("Authorization", "Bearer "+string(b))
		return next(ctx, request)
	}
}

func (b bearerToken) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set("Authorization", "Bearer "+string(b))
		return conn
	}
}

func (b bearerToken) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

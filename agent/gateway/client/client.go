package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// Client reaches one gateway of a cluster, and another while that one does not answer. Create it with New. What it asks for is in its
// parts, whose methods are its own.
type Client struct {
	*transport
	*objects
	*classes
	*nodes
	*repairs
	*scrubs
	*compactions
	*balances
	*transitions
	*upkeep
}

// transport sends requests to a gateway and turns replies into values and errors. It knows no route.
type transport struct {
	bases   []*url.URL
	current atomic.Int32 // that of bases which answered last
	options Options
	http    *http.Client
}

// dialTimeout bounds the wait for a gateway that is not there; calls themselves are bounded by their contexts.
const dialTimeout = 5 * time.Second

// idlePerGateway is how many connections are kept open between calls.
const idlePerGateway = 64

// Options say who a client is, and whom it believes.
type Options struct {
	TLS    *tls.Config // whom to believe, and a certificate to show; nil: the authorities of the system, and none. Not to be changed
	Token  string      // sent as Authorization: Bearer; empty: none is
	KeyID  string      // of an access key, sent as HTTP Basic; empty: none is
	Secret string      // of the access key
}

// New returns a client of the gateway at address: host:port or an http(s) URL, or several of one cluster, separated by commas. It says
// nothing of who it is, and does not connect yet. Where a gateway cannot be reached the next one is asked; one that broke off, or that
// cannot answer now, only for what changes nothing: whether it did anything else nobody knows.
func New(address string) (*Client, error) { return NewWith(address, Options{}) }

// NewWith is New for a gateway that asks who its clients are.
func NewWith(address string, options Options) (*Client, error) {
	var bases []*url.URL
	for one := range strings.SplitSeq(address, ",") {
		base, err := parseAddress(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		bases = append(bases, base)
	}
	t := &transport{bases: bases, options: options, http: &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSClientConfig:     options.TLS,
			MaxIdleConnsPerHost: idlePerGateway,
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true, // object bytes must arrive as stored
		},
		// No gateway sends anybody elsewhere: what answers so is none, and whoever names an address to a server of this
		// cluster must not have it ask others.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return &Client{
		transport: t, objects: &objects{t}, classes: &classes{t}, nodes: &nodes{t}, repairs: &repairs{t}, scrubs: &scrubs{t},
		compactions: &compactions{t}, balances: &balances{t},
		transitions: &transitions{t}, upkeep: &upkeep{t},
	}, nil
}

func parseAddress(address string) (*url.URL, error) {
	text := address
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("gateway address %q: want host:port or http://host:port", address)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	return base, nil
}

// Address returns the URL of the gateway that answered last.
func (c *transport) Address() string { return c.bases[c.current.Load()].String() }

// Close drops idle connections.
func (c *transport) Close() { c.http.CloseIdleConnections() }

// request is one call before it is sent.
type request struct {
	route  api.Route // with its values filled in
	query  url.Values
	header http.Header
	body   io.Reader
	length int64        // of body; -1 unknown
	again  func() error // makes it ready to be sent again, though it may have been carried out; nil: it cannot be
	sent   *sentBody    // body in one try; nil: there is none
}

// sentBody is the caller's body while it is sent. The transport may read from it for a while after the answer has come, until it closes it.
type sentBody struct {
	io.Reader
	once   sync.Once
	closed chan struct{}
}

// Close says that nothing more is read. The body stays open: it is the caller's.
func (b *sentBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// once has a change be made once, so that it may be asked for at another gateway too, if its body can be read again.
func (c *transport) once(r request) request {
	if len(c.bases) < 2 {
		return r
	}
	r.again = func() error { return nil }
	if r.body != nil {
		seeker, can := r.body.(io.Seeker)
		if !can {
			r.again = nil
			return r
		}
		start, err := seeker.Seek(0, io.SeekCurrent)
		if err != nil { // a pipe, say
			r.again = nil
			return r
		}
		r.again = func() error {
			_, err := seeker.Seek(start, io.SeekStart)
			return err
		}
	}
	if r.header == nil {
		r.header = http.Header{}
	}
	name := api.NewRequest(time.Now(), func(b []byte) { _, _ = rand.Read(b) }) // which never fails
	r.header.Set("Idempotency-Key", name.String())
	return r
}

// send performs the call and returns a reply of status 2xx, whose body the caller closes.
func (c *transport) send(ctx context.Context, r request) (*http.Response, error) {
	first := int(c.current.Load())
	var errs []error
	for i := range c.bases {
		at := (first + i) % len(c.bases)
		if r.body != nil {
			r.sent = &sentBody{Reader: r.body, closed: make(chan struct{})}
		}
		reply, err := c.sendTo(ctx, c.bases[at], r)
		if err == nil || !mayGoOn(ctx, r, err) {
			c.current.Store(int32(at)) //nolint:gosec // there are few
			return reply, err
		}
		errs = append(errs, err)
		if r.again == nil {
			continue
		}
		if r.sent != nil {
			select {
			case <-r.sent.closed:
			case <-ctx.Done():
				return nil, errors.Join(append(errs, ctx.Err())...)
			}
		}
		if err := r.again(); err != nil {
			return nil, errors.Join(append(errs, err)...)
		}
	}
	return nil, errors.Join(errs...)
}

// mayGoOn reports whether a call may be made at another gateway after it has failed at one: it was not made there, or changes nothing.
func mayGoOn(ctx context.Context, r request, err error) bool {
	var dial *net.OpError
	switch {
	case ctx.Err() != nil:
		return false
	case errors.As(err, &dial) && dial.Op == "dial":
		return true
	}
	isSafe := r.again != nil || r.route.Method == http.MethodGet
	return isSafe && (errors.Is(err, ErrUnreachable) || errors.Is(err, api.ErrUnavailable) || errors.Is(err, api.ErrUnknownOutcome))
}

// sendTo is send to one gateway.
func (c *transport) sendTo(ctx context.Context, base *url.URL, r request) (*http.Response, error) {
	target := *base
	path, err := url.PathUnescape(r.route.Path)
	if err != nil {
		return nil, fmt.Errorf("building the request path %q: %w", r.route.Path, err)
	}
	target.Path, target.RawPath = base.Path+path, base.EscapedPath()+r.route.Path
	target.RawQuery = r.query.Encode()
	var body io.Reader
	if r.body != nil {
		body = r.sent
	}
	call, err := http.NewRequestWithContext(ctx, r.route.Method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("building the request: %w", err)
	}
	if r.body != nil {
		call.ContentLength = r.length
		if r.length == 0 {
			call.Body = http.NoBody
			_ = r.sent.Close() // which never fails
		}
	}
	for name, values := range r.header {
		call.Header[name] = values
	}
	switch {
	case c.options.Token != "":
		call.Header.Set("Authorization", "Bearer "+c.options.Token)
	case c.options.KeyID != "":
		call.SetBasicAuth(c.options.KeyID, c.options.Secret)
	}
	reply, err := c.http.Do(call)
	if err != nil {
		var cause *url.Error
		if errors.As(err, &cause) {
			err = cause.Err // the URL is said once, below
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s %s: %w", r.route.Method, base, err)
		}
		return nil, fmt.Errorf("%w at %s: %w", ErrUnreachable, base, err)
	}
	if reply.StatusCode < 200 || reply.StatusCode > 299 {
		return nil, refusal(reply)
	}
	return reply, nil
}

// call sends input as JSON where it is not nil and decodes the reply into output where that is not nil.
func (c *transport) call(ctx context.Context, route api.Route, query url.Values, input, output any) (err error) {
	r := request{route: route, query: query}
	if input != nil {
		text, err := json.Marshal(input)
		if err != nil {
			return fmt.Errorf("encoding the request: %w", err)
		}
		r.body, r.length = bytes.NewReader(text), int64(len(text))
	}
	if route.Method == http.MethodPost || input != nil {
		r.header = jsonHeader() // without a body too, or the gateway refuses it
	}
	reply, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reply.Body.Close()) }()
	return decode(reply, output)
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// replyLimit bounds what is read of a reply that is no object: a page of a listing, with the longest keys, has some 30 MiB.
const replyLimit = 64 << 20

func decode(reply *http.Response, output any) error {
	body := &io.LimitedReader{R: reply.Body, N: replyLimit}
	var err error
	if output != nil {
		err = json.NewDecoder(body).Decode(output)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, body) // read to the end, so that the connection is used again
	}
	if body.N == 0 {
		err = fmt.Errorf("it has more than %d bytes, which no gateway sends; is %s one?", replyLimit, reply.Request.URL.Host)
	}
	if err != nil {
		return fmt.Errorf("decoding the gateway's reply to %s %s: %w", reply.Request.Method, reply.Request.URL.Path, err)
	}
	return nil
}

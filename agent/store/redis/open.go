package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/store"
)

// Options say which server and database to use, and how.
type Options struct {
	Address  string // host:port
	Username string
	Password string
	Database int
	TLS      *tls.Config   // nil: no TLS
	Timeout  time.Duration // how long a connection may take to be made or to move on before the server counts as down; default 10 s
}

const (
	defaultTimeout = 10 * time.Second

	// connectionBuffer is of what is read and of what is written, in bytes each.
	connectionBuffer = 64 << 10

	// valueLimit is the longest string of Redis (proto-max-bulk-len).
	valueLimit = 512 << 20

	keyPrefix = "restripe.value/"
)

// Store is a store.Store and store.Lister on one Redis database. Use Open.
type Store struct {
	client   rueidis.Client
	location string
	run      *run
	pass     store.Pass
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Lister     = (*Store)(nil)
	_ store.ManyReader = (*Store)(nil)
	_ store.Volatile   = (*Store)(nil)
	_ store.Between    = (*Store)(nil)
)

// Open connects to a server, which must answer: errors wrap store.ErrDown if it does not, store.ErrAuth if it refuses
// the credentials.
func Open(ctx context.Context, options Options) (*Store, error) {
	scheme := "redis"
	if options.TLS != nil {
		scheme = "rediss"
	}
	location := fmt.Sprintf("%s://%s/%d", scheme, options.Address, options.Database)
	if options.Timeout <= 0 {
		options.Timeout = defaultTimeout
	}
	r := &run{}
	client, err := connect(ctx, options, r)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", location, classify(ctx, err))
	}
	s := &Store{client: client, location: location, run: r}
	s.pass.All, s.pass.There = s.all, s.there
	if err := client.Do(ctx, client.B().Ping().Build()).Error(); err != nil {
		client.Close()
		return nil, fmt.Errorf("opening %s: %w", location, classify(ctx, err))
	}
	return s, nil
}

// connect makes the client, which dials. It returns as soon as ctx ends; a client that is still made then is closed.
func connect(ctx context.Context, options Options, r *run) (rueidis.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type result struct {
		client rueidis.Client
		err    error
	}
	made := make(chan result, 1)
	go func() {
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress:       []string{options.Address},
			Username:          options.Username,
			Password:          options.Password,
			SelectDB:          options.Database,
			TLSConfig:         options.TLS,
			Dialer:            net.Dialer{Timeout: options.Timeout},
			ConnWriteTimeout:  options.Timeout,
			ForceSingleClient: true,
			DisableCache:      true,
			DisableRetry:      true, // whoever calls decides; a read that repeats itself for ever would hide a server that is down
			DialCtxFn:         r.dial,
			ClientSetInfo:     rueidis.DisableClientSetInfo,
			ClientName:        "restripe",
			// One connection: Redis carries out one command at a time anyway, and what is asked for at once goes in one write.
			PipelineMultiplex:   -1,
			ReadBufferEachConn:  connectionBuffer,
			WriteBufferEachConn: connectionBuffer,
		})
		made <- result{client, err}
	}()
	select {
	case result := <-made:
		return result.client, result.err
	case <-ctx.Done():
		go func() {
			if late := <-made; late.err == nil {
				late.client.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// Close ends the connections. The values stay.
func (s *Store) Close() error {
	s.pass.Forget()
	s.client.Close()
	return nil
}

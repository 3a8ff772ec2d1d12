package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"

	"github.com/redis/rueidis"
)

// run remembers which run of the server answers. A server that starts again ends all its connections, so that what was
// learned since the last one was made holds.
type run struct {
	mutex sync.Mutex
	dials uint64 // connections that were made
	known uint64 // dials when name was asked for; 0: never
	name  string
}

// dial makes a connection, and counts it before anything is asked over it.
func (r *run) dial(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (connection net.Conn, err error) {
	if config != nil {
		connection, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
	} else {
		connection, err = dialer.DialContext(ctx, "tcp", address)
	}
	if err == nil {
		r.mutex.Lock()
		r.dials++
		r.mutex.Unlock()
	}
	return connection, err
}

// Run implements store.Volatile: the run_id of the server, unless each value is on disk before it is acknowledged. A server
// that does not say it is warned of by Info.
func (s *Store) Run(ctx context.Context) (string, error) {
	s.run.mutex.Lock()
	dials, known, name := s.run.dials, s.run.known, s.run.name
	s.run.mutex.Unlock()
	if dials == known {
		return name, nil
	}
	facts, err := s.facts(ctx)
	if err != nil {
		return "", err
	}
	if name = facts["run_id"]; isDurable(facts) {
		name = ""
	}
	s.run.mutex.Lock()
	defer s.run.mutex.Unlock()
	if s.run.known < dials {
		s.run.known, s.run.name = dials, name
	}
	return name, nil
}

// isDurable reports whether acknowledged values outlive any crash.
func isDurable(facts map[string]string) bool {
	return facts["appendonly"] == "yes" && facts["appendfsync"] == "always"
}

// facts is what the server says of itself.
func (s *Store) facts(ctx context.Context) (map[string]string, error) {
	answer, err := s.client.Do(ctx, s.client.B().Info().Build()).ToString()
	if err != nil {
		return nil, fmt.Errorf("describing %s: %w", s.location, classify(ctx, err))
	}
	facts := parseInfo(answer)
	// Hosted servers often refuse CONFIG; then INFO alone has to do, and says nothing of appendfsync.
	for _, name := range []string{"maxmemory", "maxmemory-policy", "appendonly", "appendfsync"} {
		settings, err := s.client.Do(ctx, s.client.B().ConfigGet().Parameter(name).Build()).AsStrMap()
		if _, refused := rueidis.IsRedisErr(err); refused {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("describing %s: %w", s.location, classify(ctx, err))
		}
		for name, value := range settings {
			facts[name] = value
		}
	}
	return facts, nil
}

//go:build ceph

package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ceph/go-ceph/rados"
	"golang.org/x/sync/semaphore"

	"github.com/restripe/restripe/agent/store"
)

// What is under way at once: below what librados itself allows, since past that it makes submitters wait.
const (
	windowBytes      = 64 << 20
	windowOperations = 512

	leastCost = windowBytes / windowOperations // of an operation without data
)

// valueLimit is below the default of osd_max_write_size, 90 MiB, by room for the attribute.
const valueLimit = 90<<20 - 4096

// Store is a store.Store and store.Lister on one pool. Use Open.
type Store struct {
	options    Options
	connection *rados.Conn
	context    *rados.IOContext
	pool       ioctx
	poolID     int64
	location   string

	window *semaphore.Weighted
	latest latest
	known  atomic.Pointer[place] // as the monitors said last
	look   look

	ctx    context.Context // of looks that nobody waits for; ended by Close
	cancel context.CancelFunc
	mutex  sync.Mutex
	active int // operations under way, those included whose callers have left
	closed bool
	idle   chan struct{} // closed with the last operation after Close
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Lister = (*Store)(nil)
)

// Open connects to a cluster and checks that the pool can be a node. Errors say what to do; they wrap ErrConfig, ErrPool,
// store.ErrAuth or store.ErrDown where one applies.
func Open(ctx context.Context, options Options) (*Store, error) {
	if options.Pool == "" {
		return nil, fmt.Errorf("%w: no pool is named", ErrPool)
	}
	connection, err := connect(ctx, &options)
	if err != nil {
		return nil, fmt.Errorf("opening the pool %s: %w", options.Pool, err)
	}
	s := &Store{
		options: options, connection: connection, location: "ceph:" + options.Pool,
		window: semaphore.NewWeighted(windowBytes), idle: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.openPool(ctx); err != nil {
		s.cancel()
		connection.Shutdown()
		return nil, fmt.Errorf("opening the pool %s: %w", options.Pool, err)
	}
	return s, nil
}

func (s *Store) openPool(ctx context.Context) error {
	if _, err := s.place(ctx); err != nil {
		return err
	}
	context, err := s.connection.OpenIOContext(s.options.Pool)
	if err != nil {
		return classify(err)
	}
	s.context, s.pool = context, ioctx(context.Pointer())
	s.poolID, err = s.connection.GetPoolByName(s.options.Pool)
	return err
}

// place asks the monitors where the pool is and whether it can be a node. What they said is good for as long as the map of
// the OSDs is the same.
func (s *Store) place(ctx context.Context) (*place, error) {
	var stat struct {
		Epoch int64 `json:"epoch"`
	}
	answer, err := s.ask(ctx, "osd stat")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer, &stat); err != nil {
		return nil, fmt.Errorf("reading the epoch of the OSD map: %w", err)
	}
	if known := s.known.Load(); known != nil && known.epoch == stat.Epoch {
		return known, nil
	}
	var answers [3][]byte
	for i, prefix := range []string{"osd dump", "osd crush dump", "osd metadata"} {
		if answers[i], err = s.ask(ctx, prefix); err != nil {
			return nil, err
		}
	}
	found, err := judge(answers[0], answers[1], s.options.Pool)
	if err != nil {
		return nil, err
	}
	if known := s.known.Load(); known != nil && known.bucket != found.bucket {
		return nil, fmt.Errorf("%w: the rule of the pool %s takes %s instead of %s now, so that its blocks move there and share the fate of others; "+
			"let the rule take %s again, or drain the node and remove it", ErrPool, s.options.Pool, found.bucket, known.bucket, known.bucket)
	}
	if err := found.readMetadata(answers[2]); err != nil {
		return nil, err
	}
	s.known.Store(found)
	return found, nil
}

// connect completes options and connects as they say. It returns as soon as ctx ends; a connection that is still made
// then is given up.
func connect(ctx context.Context, options *Options) (*rados.Conn, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	connection, err := rados.NewConnWithUser(options.User)
	if err != nil {
		return nil, err
	}
	if err := configure(connection, options); err != nil {
		return nil, err
	}
	connected := make(chan error, 1)
	go func() { connected <- connection.Connect() }()
	select {
	case err := <-connected:
		if err != nil {
			return nil, options.refused(err)
		}
		return connection, nil
	case <-ctx.Done():
		go func() {
			if <-connected == nil {
				connection.Shutdown()
			}
		}()
		return nil, ctx.Err()
	}
}

// configure reads the configuration file and sets time-outs, those of the file where options have none.
func configure(connection *rados.Conn, options *Options) error {
	if err := connection.ReadConfigFile(options.Config); err != nil {
		return fmt.Errorf("%w: %s: %w; see that it is a configuration file of Ceph", ErrConfig, options.Config, err)
	}
	if options.Timeout <= 0 {
		text, err := connection.GetConfigOption("rados_osd_op_timeout")
		if err != nil {
			return fmt.Errorf("reading rados_osd_op_timeout: %w", err)
		}
		if seconds, err := strconv.ParseFloat(text, 64); err == nil { // librados has checked it
			options.Timeout = time.Duration(seconds * float64(time.Second))
		}
	}
	if options.Timeout <= 0 {
		options.Timeout = defaultTimeout
	}
	seconds := strconv.Itoa(int((options.Timeout + time.Second - 1) / time.Second))
	settings := [][2]string{
		{"rados_osd_op_timeout", seconds}, {"rados_mon_op_timeout", seconds}, {"client_mount_timeout", seconds},
		// What librados would print and log is for its own developers; errors come back from the calls.
		{"log_to_stderr", "false"}, {"err_to_stderr", "false"}, {"log_file", ""}, {"admin_socket", ""},
	}
	if options.Keyring != "" {
		settings = append(settings, [2]string{"keyring", options.Keyring})
	}
	for _, setting := range settings {
		if err := connection.SetConfigOption(setting[0], setting[1]); err != nil {
			return fmt.Errorf("setting %s of librados to %q: %w", setting[0], setting[1], err)
		}
	}
	return nil
}

// refused explains why a connection could not be made.
func (o Options) refused(err error) error {
	keyring := o.Keyring
	if keyring == "" {
		keyring = "where " + o.Config + " says"
	}
	number, _ := numberOf(err)
	switch number {
	case syscall.EACCES, syscall.EPERM:
		return fmt.Errorf("%w: the cluster of %s does not know the user client.%s by the key in its keyring (%s): %w; give the right user and keyring, "+
			"see `ceph auth get client.%s`", store.ErrAuth, o.Config, o.User, keyring, err, o.User)
	case syscall.ENOENT, syscall.EINVAL:
		return fmt.Errorf("%w: the keyring (%s) has no usable key of client.%s: %w; write it with `ceph auth get client.%s -o FILE`",
			store.ErrAuth, keyring, o.User, err, o.User)
	case syscall.ETIMEDOUT:
		return fmt.Errorf("%w: the monitors that %s names do not answer within %v: %w; see that they run, have a quorum and are reachable from here",
			store.ErrDown, o.Config, o.Timeout, err)
	}
	return classify(fmt.Errorf("connecting to the cluster of %s: %w", o.Config, err))
}

// command asks the monitors. It returns as soon as ctx ends, though librados waits on until its time-out.
// done is called once librados is through.
func command(ctx context.Context, connection *rados.Conn, options Options, prefix string, done func()) ([]byte, error) {
	text, err := json.Marshal(map[string]string{"prefix": prefix, "format": "json"})
	if err != nil {
		done()
		return nil, err
	}
	type answer struct {
		text   []byte
		status string
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		defer done()
		text, status, err := connection.MonCommand(text)
		answered <- answer{text, status, err}
	}()
	select {
	case a := <-answered:
		return a.text, options.unanswered(prefix, a.status, a.err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// unanswered explains why the monitors did not answer a command; nil if they did.
func (o Options) unanswered(prefix, status string, err error) error {
	if err == nil {
		return nil
	}
	number, _ := numberOf(err)
	switch number {
	case syscall.ETIMEDOUT:
		return fmt.Errorf("%w: the monitors do not answer `ceph %s` within %v: %w", store.ErrDown, prefix, o.Timeout, err)
	case syscall.EACCES, syscall.EPERM:
		return fmt.Errorf("%w: client.%s may not ask `ceph %s`: %w; give it the capability mon 'allow r'", store.ErrAuth, o.User, prefix, err)
	}
	return classify(fmt.Errorf("asking `ceph %s`: %w: %s", prefix, err, status))
}

// begin says that librados is going to be used until end; it fails after Close.
func (s *Store) begin() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		return errClosed
	}
	s.active++
	return nil
}

func (s *Store) end() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.active--
	if s.closed && s.active == 0 {
		close(s.idle)
	}
}

// enter waits for the latest map of the OSDs where that is due, and for room in the window. leave undoes it.
func (s *Store) enter(ctx context.Context, cost int64) error {
	if err := s.begin(); err != nil {
		return err
	}
	err := ctx.Err()
	if err == nil {
		err = s.awaitLatest(ctx)
	}
	if err == nil {
		err = s.window.Acquire(ctx, weight(cost))
	}
	if err != nil {
		s.end()
	}
	return err
}

func (s *Store) leave(cost int64) {
	s.window.Release(weight(cost))
	s.end()
}

func weight(cost int64) int64 { return min(max(cost, leastCost), windowBytes) }

// Close waits for the operations under way, which end within the time-out, and disconnects. The values stay.
func (s *Store) Close() error {
	s.mutex.Lock()
	if s.closed {
		s.mutex.Unlock()
		return nil
	}
	s.closed = true
	s.cancel()
	if s.active == 0 {
		close(s.idle)
	}
	s.mutex.Unlock()
	<-s.idle
	s.latest.mutex.Lock()
	waiting := s.latest.waiting
	s.latest.mutex.Unlock()
	if waiting == nil {
		s.disconnect()
		return nil
	}
	go func() { // librados has no time-out for this wait, and must not be taken away from under it
		<-waiting
		s.disconnect()
	}()
	return nil
}

func (s *Store) disconnect() {
	s.context.Destroy()
	s.connection.Shutdown()
}

// ask asks the monitors.
func (s *Store) ask(ctx context.Context, prefix string) ([]byte, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	return command(ctx, s.connection, s.options, prefix, s.end)
}

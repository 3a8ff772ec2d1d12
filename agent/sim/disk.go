package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
)

// disk is the store of one node, which outlives the agents that mount it.
type disk struct {
	name    block.NodeID
	ledger  *ledger
	journal *journal
	dice    *dice
	values  *mem.Store

	mutex   sync.Mutex
	full    bool
	slow    time.Duration // added to every operation
	odds    diskOdds
	content map[string]uint32 // checksum of what was ever created under a key
	torn    map[string]bool   // keys whose value was cut off by a crash
	recent  []string          // keys of blocks created last
	durable bool              // a restart loses nothing
	run     int               // of the server that keeps the values, raised when it starts again
	backs   int               // times the disk has lost contents and goes on as if nothing had happened
	gone    map[string]bool   // keys of the blocks that it lost by that
}

// diskOdds are probabilities per operation.
type diskOdds struct {
	refuse float64 // nothing is done, and the store does not answer
	mute   float64 // it is done, and the store does not answer
}

func newDisk(l *ledger, name block.NodeID, d *dice) *disk {
	return &disk{
		name: name, ledger: l, journal: l.journal, dice: d, durable: d.chance(0.5), values: mem.New(0),
		content: map[string]uint32{}, torn: map[string]bool{}, gone: map[string]bool{},
	}
}

// with changes a disk until what it returns is called.
func (d *disk) with(change, back func(*disk)) func() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	change(d)
	return func() {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		back(d)
	}
}

// mount is the disk as one start of an agent has it: it ends with its process.
type mount struct {
	*disk
	process *process
}

var (
	_ store.Store    = (*mount)(nil)
	_ store.Lister   = (*mount)(nil)
	_ store.Volatile = (*mount)(nil)
)

func isBlock(key string) bool { return strings.HasPrefix(key, block.KeyPrefix) }

// begin takes the time of an operation and says whether it may go on, and whether it will be answered.
func (m *mount) begin(ctx context.Context) (mute bool, err error) {
	m.mutex.Lock()
	slow, odds := m.slow, m.odds
	m.mutex.Unlock()
	took := m.dice.between(10*time.Microsecond, 200*time.Microsecond)
	if slow > 0 {
		took += m.dice.between(0, slow)
	}
	if err := wait(ctx, took); err != nil {
		return false, err
	}
	if !m.process.isAlive() {
		return false, fmt.Errorf("disk %s: its agent has crashed: %w", m.name, store.ErrDown)
	}
	if odds.refuse > 0 && m.dice.chance(odds.refuse) {
		return false, fmt.Errorf("disk %s: %w", m.name, store.ErrDown)
	}
	return odds.mute > 0 && m.dice.chance(odds.mute), nil
}

func (m *mount) end(mute bool, err error) error {
	if err == nil && mute {
		return fmt.Errorf("disk %s: done, and not acknowledged: %w", m.name, store.ErrDown)
	}
	return err
}

// Create implements store.Store. A crash while it is under way leaves nothing, all, or a torn value.
func (m *mount) Create(ctx context.Context, key string, value []byte) error {
	value = append([]byte(nil), value...)
	var mute bool
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		mute, err = m.begin(context.WithoutCancel(ctx)) // a write that is under way is not called back
	}()
	select {
	case <-done:
	case <-m.process.died:
		m.crash(key, value)
		return fmt.Errorf("disk %s: its agent has crashed: %w", m.name, store.ErrDown)
	}
	if err != nil {
		return err
	}
	m.mutex.Lock()
	full := m.full && isBlock(key)
	m.mutex.Unlock()
	if full {
		return fmt.Errorf("disk %s: %w", m.name, store.ErrFull)
	}
	return m.end(mute, m.put(key, value))
}

// crash decides what is left of a write that was under way.
func (m *mount) crash(key string, value []byte) {
	switch m.dice.below(3) {
	case 0:
		if err := m.put(key, value); err == nil {
			m.journal.write(string(m.name), "%s was written as its agent crashed", key)
		}
	case 1:
		if !isBlock(key) {
			return
		}
		if err := m.put(key, value); err == nil {
			m.tear(key)
			m.journal.write(string(m.name), "%s was torn as its agent crashed", key)
		}
	}
}

func (d *disk) tear(key string) {
	d.values.Damage(key, func(value []byte) []byte { return value[:len(value)/2] })
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.torn[key] = true
}

// put creates a value at once. One key has one content for ever.
func (d *disk) put(key string, value []byte) error {
	if err := d.values.Create(context.Background(), key, value); err != nil {
		return err
	}
	sum := kernel.Checksum(value)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !isBlock(key) {
		return nil
	}
	if was, known := d.content[key]; known && was != sum {
		d.journal.violate(OneContent, "block %s of %s was created with another content than before", key, d.name)
	}
	d.content[key] = sum
	delete(d.gone, key)
	d.recent = append(d.recent, key)
	return nil
}

// ReadAt implements store.Store.
func (m *mount) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	mute, err := m.begin(ctx)
	if err != nil {
		return 0, err
	}
	m.mutex.Lock()
	torn := m.torn[key]
	m.mutex.Unlock()
	if torn {
		return 0, fmt.Errorf("disk %s: reading %s: %w", m.name, key, store.ErrCorrupt)
	}
	n, err := m.values.ReadAt(ctx, key, p, offset)
	if err = m.end(mute, err); err != nil {
		return 0, err
	}
	return n, nil
}

// Delete implements store.Store.
func (m *mount) Delete(ctx context.Context, key string) error {
	mute, err := m.begin(ctx)
	if err != nil {
		return err
	}
	if isBlock(key) {
		m.ledger.checkDelete(m.name, key)
	}
	m.remove(key)
	return m.end(mute, nil)
}

func (d *disk) remove(key string) {
	// A store in memory deletes whatever is asked of it.
	_ = d.values.Delete(context.Background(), key)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.torn, key)
}

// List implements store.Lister.
func (m *mount) List(ctx context.Context, prefix string, visit func(key string, size int64) error) error {
	mute, err := m.begin(ctx)
	if err != nil {
		return err
	}
	return m.end(mute, m.values.List(ctx, prefix, visit))
}

// Page implements store.Lister.
func (m *mount) Page(ctx context.Context, prefix, after string, limit int) (keys []string, more bool, err error) {
	mute, err := m.begin(ctx)
	if err != nil {
		return nil, false, err
	}
	keys, more, err = m.values.Page(ctx, prefix, after, limit)
	return keys, more, m.end(mute, err)
}

// Info implements store.Store.
func (m *mount) Info(ctx context.Context) (store.Info, error) {
	mute, err := m.begin(ctx)
	if err != nil {
		return store.Info{}, err
	}
	info, err := m.values.Info(ctx)
	return info, m.end(mute, err)
}

// Run implements store.Volatile.
func (m *mount) Run(context.Context) (string, error) { return m.runName(), nil }

func (d *disk) runName() string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.durable {
		return ""
	}
	return fmt.Sprint("run", d.run)
}

// Close implements store.Store.
func (m *mount) Close() error { return nil }

// marker is the value of a small key, empty where there is none.
func (d *disk) marker(key string) string {
	value := make([]byte, 256)
	n, err := d.values.ReadAt(context.Background(), key, value, 0)
	if err != nil {
		return ""
	}
	return string(value[:n])
}

// read returns a value as it is at rest, and whether it is what was once created under the key.
func (d *disk) read(key string) (value []byte, sound bool) {
	d.mutex.Lock()
	want, torn := d.content[key], d.torn[key]
	d.mutex.Unlock()
	value = d.whole(key)
	return value, value != nil && !torn && kernel.Checksum(value) == want
}

func (d *disk) whole(key string) []byte {
	for size := 4 << 10; ; size *= 4 {
		value := make([]byte, size)
		n, err := d.values.ReadAt(context.Background(), key, value, 0)
		if err != nil {
			return nil
		}
		if n < size {
			return value[:n]
		}
	}
}

// keys lists the blocks at rest.
func (d *disk) keys() (keys []string) {
	// A store in memory lists without fail.
	_ = d.values.List(context.Background(), block.KeyPrefix, func(key string, _ int64) error {
		keys = append(keys, key)
		return nil
	})
	return keys
}

// erase loses everything, as a disk does that was replaced.
func (d *disk) erase() { d.replace(&snapshot{}) }

// snapshot is what a disk held at some moment, markers and all.
type snapshot struct {
	values map[string][]byte
	torn   map[string]bool
}

func (s *snapshot) marker() string { return string(s.values[incarnationKey]) }

// water is the high-water mark of the disk, in what its agent kept last of the catalogs that it obeys.
func (s *snapshot) water() int64 {
	var newest struct{ Number, Water int64 }
	for _, key := range []string{"restripe/obeys/0", "restripe/obeys/1"} {
		one := newest
		if json.Unmarshal(s.values[key], &one) == nil && one.Number > newest.Number { // else it is not there
			newest = one
		}
	}
	return newest.Water
}

func (d *disk) snapshot() *snapshot {
	s := &snapshot{values: map[string][]byte{}}
	// A store in memory lists without fail.
	_ = d.values.List(context.Background(), "", func(key string, _ int64) error {
		s.values[key] = nil
		return nil
	})
	for key := range s.values {
		s.values[key] = d.whole(key)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	s.torn = maps.Clone(d.torn)
	return s
}

// goBack makes the disk what it was at the time of a snapshot, as a server does that crashes and reads its last dump, or
// somebody who puts the files of earlier back.
func (d *disk) goBack(s *snapshot) {
	d.replace(s)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.run++
}

func (d *disk) replace(s *snapshot) {
	was := d.keys()
	d.values.Erase()
	for key, value := range s.values {
		// A store in memory takes whatever it is given, and has nothing.
		_ = d.values.Create(context.Background(), key, value)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.backs++
	for _, key := range was {
		if _, kept := s.values[key]; !kept {
			d.gone[key] = true
		}
	}
	for key := range s.values {
		delete(d.gone, key)
	}
	clear(d.torn)
	maps.Copy(d.torn, s.torn)
	d.recent = nil
}

// losses returns how often the disk has lost contents.
func (d *disk) losses() int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.backs
}

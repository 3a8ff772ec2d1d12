package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// A value says whose it is: number of the record and version, and then bytes that these two choose from a pool that is the same in every
// run, so that it takes a comparison to verify one, and parts of two versions do not make one.
const (
	valueHead = 16
	valueMost = 1 << 20
)

var valuePool = sync.OnceValue(func() []byte {
	random := rand.New(rand.NewPCG(1, 2))
	pool := make([]byte, 0, 2*valueMost)
	for len(pool) < 2*valueMost {
		pool = binary.LittleEndian.AppendUint64(pool, random.Uint64())
	}
	return pool
})

// poolAt is where in the pool the bytes of a version begin: a hash of both numbers (the finish of SplitMix64).
func poolAt(record, version uint64) int {
	x := record*0x9e3779b97f4a7c15 + version
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % valueMost)
}

// appendValue appends a version of a record, of so many bytes, at least valueHead and at most valueMost.
func appendValue(to []byte, record, version, size int) []byte {
	to = binary.LittleEndian.AppendUint64(to, uint64(record))
	to = binary.LittleEndian.AppendUint64(to, uint64(version))
	at := poolAt(uint64(record), uint64(version))
	return append(to, valuePool()[at:at+size-valueHead]...)
}

// versionOf verifies a value and returns its version.
func versionOf(value []byte, record, size int) (int, error) {
	if len(value) != size {
		return 0, fmt.Errorf("record %d has %d bytes, %d were written", record, len(value), size)
	}
	owner, version := binary.LittleEndian.Uint64(value), binary.LittleEndian.Uint64(value[8:])
	if owner != uint64(record) {
		return 0, fmt.Errorf("record %d has a value of record %d", record, owner)
	}
	at := poolAt(owner, version)
	if !bytes.Equal(value[valueHead:], valuePool()[at:at+size-valueHead]) {
		return 0, fmt.Errorf("record %d, version %d: the bytes are not those that were written", record, version)
	}
	return int(version), nil
}

// ledger knows every version of every record that was written through one door, and when: by a clock that counts beginnings and ends. By
// that it judges reads as linearizability does a register with one value: a read returns a version that was begun, and none that had ended
// before another one began which had ended before the read began, whoever wrote it.
type ledger struct {
	prefix  string // of the keys
	size    int    // of all values
	clock   atomic.Int64
	records []entry
}

// entry is a record. Version v is the v-th write, from 0.
type entry struct {
	mutex  sync.Mutex
	ended  []int64 // when each version was acknowledged; math.MaxInt64: not yet
	newest int64   // the latest beginning of a version that was acknowledged
}

func newLedger(prefix string, records, size int) *ledger {
	return &ledger{prefix: prefix, size: size, records: make([]entry, records)}
}

func (l *ledger) key(record int) string { return fmt.Sprintf("%suser%08d", l.prefix, record) }

// write has the next version of a record written.
func (l *ledger) write(record int, buffer []byte, put func(key string, value []byte) error) ([]byte, error) {
	e := &l.records[record]
	e.mutex.Lock()
	began, version := l.clock.Add(1), len(e.ended)
	e.ended = append(e.ended, math.MaxInt64)
	e.mutex.Unlock()
	buffer = appendValue(buffer[:0], record, version, l.size)
	if err := put(l.key(record), buffer); err != nil {
		return buffer, fmt.Errorf("writing %s: %w", l.key(record), err)
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.ended[version] = l.clock.Add(1)
	e.newest = max(e.newest, began)
	return buffer, nil
}

// asOf is what a read has to see that begins now.
func (l *ledger) asOf(record int) (newest int64) {
	e := &l.records[record]
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.newest
}

// judge verifies what a read returned that began as of newest.
func (l *ledger) judge(record int, value []byte, newest int64) error {
	version, err := versionOf(value, record, l.size)
	if err != nil {
		return fmt.Errorf("reading %s: %w", l.key(record), err)
	}
	e := &l.records[record]
	e.mutex.Lock()
	defer e.mutex.Unlock()
	switch {
	case version >= len(e.ended):
		return fmt.Errorf("reading %s: version %d was never written, only %d were", l.key(record), version, len(e.ended))
	case e.ended[version] < newest:
		return fmt.Errorf("reading %s: version %d of %d was overwritten before the read began, by a write that was acknowledged", l.key(record),
			version, len(e.ended))
	}
	return nil
}

// records puts the first version of all of them.
func (l *ledger) fill(connect func() (session, error)) error {
	return byClients(fillers, len(l.records), connect, func(s session, i int, buffer []byte) ([]byte, error) {
		return l.write(i, buffer, s.set)
	})
}

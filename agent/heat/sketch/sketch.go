package sketch

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
	"time"
)

// The shape of a sketch.
const (
	rows      = 4
	shardBits = 6
	shards    = 1 << shardBits // each with a lock of its own, and the keys whose hash begins with its number
	rowBits   = 9
	columns   = 1 << rowBits // of one row of one shard

	// Bytes is what a sketch takes.
	Bytes = shards * rows * columns * 8
)

// Counts are how often a key was written and read.
type Counts struct{ Writes, Reads float64 }

// Sketch counts keys of one half-life. Its methods are safe for concurrent use and allocate nothing.
type Sketch struct {
	start     time.Time
	perSecond float64 // half-lives
	shards    [shards]shard
}

type shard struct {
	mutex    sync.Mutex
	landmark float64 // in half-lives since the start: what the cells are as of
	clock    float64 // half-lives that have passed since the start, never less than before
	rows     [rows][columns]cell
}

// cell counts all keys that share it.
type cell struct{ writes, reads float32 }

// New returns a sketch that has counted nothing. start is at or before the first time handed in.
func New(halfLife time.Duration, start time.Time) *Sketch {
	return &Sketch{start: start, perSecond: 1 / halfLife.Seconds()}
}

// Wrote counts a write of a key.
func (s *Sketch) Wrote(key string, now time.Time) { s.note(key, now, Counts{Writes: 1}) }

// Read counts a read of a key, and returns what is counted of it with this one.
func (s *Sketch) Read(key string, now time.Time) Counts { return s.note(key, now, Counts{Reads: 1}) }

func (s *Sketch) note(key string, now time.Time, more Counts) Counts {
	hash := hashOf(key)
	of := &s.shards[hash>>(64-shardBits)]
	of.mutex.Lock()
	defer of.mutex.Unlock()
	scale := of.scale(s, now)
	had := of.least(hash)
	had.writes, had.reads = raised(had.writes, more.Writes*scale), raised(had.reads, more.Reads*scale)
	for row := range of.rows {
		cell := of.cell(row, hash)
		cell.writes, cell.reads = max(cell.writes, had.writes), max(cell.reads, had.reads)
	}
	return Counts{Writes: float64(had.writes) / scale, Reads: float64(had.reads) / scale}
}

// Of returns how often a key was written and read: never less, and little more if it was much.
func (s *Sketch) Of(key string, now time.Time) Counts {
	hash := hashOf(key)
	of := &s.shards[hash>>(64-shardBits)]
	of.mutex.Lock()
	defer of.mutex.Unlock()
	scale, least := of.scale(s, now), of.least(hash)
	return Counts{Writes: float64(least.writes) / scale, Reads: float64(least.reads) / scale}
}

// cell is where a row counts a key.
func (s *shard) cell(row int, hash uint64) *cell {
	return &s.rows[row][hash>>(row*rowBits)&(columns-1)]
}

// least is what is counted of a key: every cell has that and what other keys brought into it.
func (s *shard) least(hash uint64) cell {
	least := *s.cell(0, hash)
	for row := 1; row < rows; row++ {
		other := s.cell(row, hash)
		least.writes, least.reads = min(least.writes, other.writes), min(least.reads, other.reads)
	}
	return least
}

// farLandmark is after how many half-lives a landmark moves on. Values stay far below the largest float32, 2^127.
const farLandmark = 64

// scale is how much one that is noted now counts as of the landmark, which it moves on where that is far. The caller holds the mutex.
func (s *shard) scale(of *Sketch, now time.Time) float64 {
	s.clock = max(s.clock, now.Sub(of.start).Seconds()*of.perSecond)
	if s.clock-s.landmark > farLandmark {
		passed := math.Floor(s.clock - s.landmark) // by whole powers of two: exact
		for row := range s.rows {
			for i := range s.rows[row] {
				cell := &s.rows[row][i]
				cell.writes, cell.reads = aged(cell.writes, passed), aged(cell.reads, passed)
			}
		}
		s.landmark += passed
	}
	return math.Exp2(s.clock - s.landmark)
}

// aged is a value so many half-lives later. What is as good as nothing becomes that.
func aged(value float32, halfLives float64) float32 {
	return float32(math.Ldexp(float64(value), -int(min(halfLives, 1<<10))))
}

// raised adds to a value, and rounds up: a count is never less than the true one.
func raised(value float32, added float64) float32 {
	exact := float64(value) + added
	sum := float32(exact)
	if float64(sum) < exact {
		return math.Nextafter32(sum, math.MaxFloat32)
	}
	return sum
}

// hashOf spreads keys over shards (its top bits) and columns (the others): each eight bytes go through the finaliser of SplitMix64.
// It is the same in every process.
func hashOf(key string) uint64 {
	hash := uint64(len(key))
	var tail [8]byte
	for len(key) > 0 {
		n := copy(tail[:], key)
		clear(tail[n:])
		hash = mixed(bits.RotateLeft64(hash, 5) ^ binary.LittleEndian.Uint64(tail[:]))
		key = key[n:]
	}
	return hash
}

func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

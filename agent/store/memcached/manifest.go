package memcached

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/store"
)

// Names of items.
const (
	valuePrefix = "restripe.value/"
	partPrefix  = "restripe.part/"
)

// manifest is the content of the main item of a value in parts. The item's flags hold the value's length, so that a
// listing need not fetch it; the flags of a value in one item are 0.
type manifest struct {
	id        uint64 // random; names the parts of this creation
	length    int64  // of the value; at least 1
	partBytes int64  // of every part but the last
}

var manifestMagic = [4]byte{'R', 'S', 'M', '1'}

// manifestBytes is the size of an encoded manifest: magic, id, length, size of a part; big endian.
const manifestBytes = 28

func (m manifest) encode() []byte {
	encoded := append(make([]byte, 0, manifestBytes), manifestMagic[:]...)
	encoded = binary.BigEndian.AppendUint64(encoded, m.id)
	encoded = binary.BigEndian.AppendUint64(encoded, uint64(m.length))
	return binary.BigEndian.AppendUint64(encoded, uint64(m.partBytes))
}

// parseManifest reads the content of a main item that has flags. Errors wrap store.ErrCorrupt.
func parseManifest(encoded []byte, flags uint32) (manifest, error) {
	if len(encoded) != manifestBytes || [4]byte(encoded) != manifestMagic {
		return manifest{}, fmt.Errorf("list of parts is unreadable: %w", store.ErrCorrupt)
	}
	m := manifest{
		id:        binary.BigEndian.Uint64(encoded[4:]),
		length:    int64(binary.BigEndian.Uint64(encoded[12:])),
		partBytes: int64(binary.BigEndian.Uint64(encoded[20:])),
	}
	if m.length != int64(flags) || m.length < 1 || m.length > valueLimit || m.partBytes < 1 || m.partBytes > maxValueBytes {
		return manifest{}, fmt.Errorf("list of parts contradicts itself: %w", store.ErrCorrupt)
	}
	return m, nil
}

// parts returns the number of parts.
func (m manifest) parts() int { return int((m.length + m.partBytes - 1) / m.partBytes) }

// span returns the range of the value that a part holds.
func (m manifest) span(part int) (from, to int64) {
	from = int64(part) * m.partBytes
	return from, min(from+m.partBytes, m.length)
}

// partKey returns the name of a part's item: at most 239 bytes, of memcached's 250.
func (m manifest) partKey(key string, part int) string {
	return fmt.Sprintf("%s%016x/%d/%s", partPrefix, m.id, part, key)
}

// parsePartKey reads the name of a part's item.
func parsePartKey(name string) (of creation, part int, is bool) {
	rest, is := strings.CutPrefix(name, partPrefix)
	words := strings.SplitN(rest, "/", 3)
	if !is || len(words) != 3 {
		return creation{}, 0, false
	}
	id, err := strconv.ParseUint(words[0], 16, 64)
	if err != nil {
		return creation{}, 0, false
	}
	part, err = strconv.Atoi(words[1])
	return creation{id, words[2]}, part, err == nil && part >= 0 && part < valueLimit
}

// decimal is the text of a number inside a request.
func decimal(number int64) string { return strconv.FormatInt(number, 10) }

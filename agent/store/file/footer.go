package file

import (
	"encoding/binary"
	"fmt"

	"github.com/restripe/restripe/agent/store"
)

// footerBytes is the size of the footer: magic, CRC-32C of the value, length of the value; little endian.
const footerBytes = 16

var footerMagic = [4]byte{'R', 'S', 'V', '1'}

type footer struct {
	checksum uint32
	length   int64
}

// encode returns the footer's bytes.
func (f footer) encode() []byte {
	encoded := append(make([]byte, 0, footerBytes), footerMagic[:]...)
	encoded = binary.LittleEndian.AppendUint32(encoded, f.checksum)
	return binary.LittleEndian.AppendUint64(encoded, uint64(f.length))
}

// parseFooter reads a footer from the end of a file of fileBytes bytes. Errors wrap store.ErrCorrupt.
func parseFooter(encoded []byte, fileBytes int64) (footer, error) {
	if len(encoded) != footerBytes {
		return footer{}, fmt.Errorf("file of %d bytes is shorter than its footer: %w", fileBytes, store.ErrCorrupt)
	}
	if [4]byte(encoded) != footerMagic {
		return footer{}, fmt.Errorf("file of %d bytes has no footer: %w", fileBytes, store.ErrCorrupt)
	}
	f := footer{
		checksum: binary.LittleEndian.Uint32(encoded[4:]),
		length:   int64(binary.LittleEndian.Uint64(encoded[8:])),
	}
	if f.length != fileBytes-footerBytes {
		return footer{}, fmt.Errorf("file of %d bytes was written with %d: %w", fileBytes, f.length+footerBytes, store.ErrCorrupt)
	}
	return f, nil
}

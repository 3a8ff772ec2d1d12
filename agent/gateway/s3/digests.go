package s3

import (
	"crypto/md5"  //nolint:gosec // it is what S3 names versions of objects by
	"crypto/sha1" //nolint:gosec // clients may choose it against mistakes of transfer
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"strings"

	"github.com/restripe/restripe/agent/block"
)

// Names of metadata that say what the bytes of an object are.
const (
	metaETag = block.DigestPrefix + "etag"
	metaSum  = block.DigestPrefix // and the name of a checksum
)

// checksum is an algorithm that clients may choose.
type checksum struct {
	name      string // as in the names of headers
	make      func() hash.Hash
	composite bool // that of several parts is that of theirs, unless something else is asked for
}

// header is that which has such a checksum.
func (c *checksum) header() string { return "X-Amz-Checksum-" + c.name }

// label is the algorithm as clients name it.
func (c *checksum) label() string { return strings.ToUpper(c.name) }

// nvme is the polynomial of CRC-64/NVME, bits reversed.
const nvme = 0x9a6c9329ac4bc9b5

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	nvmeTable  = crc64.MakeTable(nvme)
)

var checksums = []checksum{
	{"crc32", func() hash.Hash { return crc32.NewIEEE() }, true},
	{"crc32c", func() hash.Hash { return crc32.New(castagnoli) }, true},
	{"crc64nvme", func() hash.Hash { return crc64.New(nvmeTable) }, false},
	{"md5", newMD5, true},
	{"sha1", sha1.New, true},
	{"sha256", sha256.New, true},
	{"sha512", sha512.New, true},
}

// checkSums refuses checksums that clients give and nobody here can verify.
func checkSums(header http.Header) error {
	for name := range header {
		kind, is := strings.CutPrefix(name, "X-Amz-Checksum-")
		switch {
		case !is, kind == "Algorithm", kind == "Type", kind == "Mode", checksumNamed(kind) != nil:
		default:
			return unknownChecksum(kind)
		}
	}
	return nil
}

func unknownChecksum(asked string) error {
	labels := make([]string, len(checksums))
	for i := range checksums {
		labels[i] = checksums[i].label()
	}
	for _, known := range []string{"XXHASH64", "XXHASH3", "XXHASH128"} {
		if strings.EqualFold(known, asked) {
			return refuse(notImplemented, "checksums of the kind %s are not part of this server; there are %s", known,
				strings.Join(labels, ", "))
		}
	}
	return refuse(invalidRequest, "the checksum algorithm is %.40q; want one of %s", asked, strings.Join(labels, ", "))
}

// checksumNamed is the algorithm of a name in any case; nil where there is none.
func checksumNamed(name string) *checksum {
	for i := range checksums {
		if strings.EqualFold(checksums[i].name, name) {
			return &checksums[i]
		}
	}
	return nil
}

// newMD5 makes what the tag of an object is.
func newMD5() hash.Hash { return md5.New() } //nolint:gosec // as S3 has it

// decodeSum reads a checksum of so many bytes in base64.
func decodeSum(text string, size int) ([]byte, bool) {
	sum, err := base64.StdEncoding.DecodeString(text)
	return sum, err == nil && len(sum) == size
}

func encodeSum(sum []byte) string { return base64.StdEncoding.EncodeToString(sum) }

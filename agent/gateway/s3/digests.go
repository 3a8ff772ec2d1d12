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
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/xxh3"

	"github.com/restripe/restripe/agent/block"
)

// Names of metadata that say what the bytes of an object are.
const (
	metaETag = block.DigestPrefix + "etag"
	metaSum  = block.DigestPrefix // and the name of a checksum
)

// checksum is an algorithm that clients may choose.
type checksum struct {
	name  string // as in the names of headers
	make  func() hash.Hash
	parts parting
}

// parting is what a checksum of an object in several parts may be.
type parting int

const (
	partsFirst parting = iota // of theirs, or of the whole where that is asked for
	partsOnly                 // of theirs
	wholeOnly                 // of the whole
)

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
	{"crc32", func() hash.Hash { return crc32.NewIEEE() }, partsFirst},
	{"crc32c", func() hash.Hash { return crc32.New(castagnoli) }, partsFirst},
	{"crc64nvme", func() hash.Hash { return crc64.New(nvmeTable) }, wholeOnly},
	{"md5", newMD5, partsOnly},
	{"sha1", sha1.New, partsOnly},
	{"sha256", sha256.New, partsOnly},
	{"sha512", sha512.New, partsOnly},
	{"xxhash64", func() hash.Hash { return xxhash.New() }, partsOnly},
	{"xxhash3", func() hash.Hash { return xxh3.New() }, partsOnly},
	{"xxhash128", func() hash.Hash { return xxh3.New128() }, partsOnly},
}

// checkSums refuses checksums that clients give and nobody here can verify.
func checkSums(header http.Header) error {
	for name := range header {
		kind, is := strings.CutPrefix(name, "X-Amz-Checksum-")
		switch {
		case !is, kind == "Algorithm", kind == "Type", kind == "Mode", checksumNamed(kind) != nil:
		default:
			return refuse(invalidRequest.saying("The algorithm type you specified in x-amz-checksum- header is invalid."),
				"the header %s is of an algorithm that this server does not have; it has %s", strings.ToLower(name), labels())
		}
	}
	return nil
}

func unknownChecksum(asked string) error {
	return refuse(invalidRequest.saying("Checksum algorithm provided is unsupported. Please try again with any of the valid types: [%s]",
		labels()), "the checksum algorithm is %.40q", asked)
}

// labels are the algorithms that there are, in the order of the alphabet.
func labels() string {
	labels := make([]string, len(checksums))
	for i := range checksums {
		labels[i] = checksums[i].label()
	}
	slices.Sort(labels)
	return strings.Join(labels, ", ")
}

func severalSums() error {
	return refuse(invalidRequest.saying("Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed."),
		"the request has several checksums; give one")
}

// badSum refuses the value of a header of a checksum.
func badSum(header, value string) error {
	return badHeader(strings.ToLower(header), value, "a checksum in base64")
}

func badHeader(header, value, want string) error {
	return refuse(invalidRequest.saying("Value for %s header is invalid.", header), "%s is %.80q; want %s", header, value, want)
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

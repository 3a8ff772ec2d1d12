package message

import "encoding/xml"

// Sums are the digests of what is stored.
type Sums struct {
	ETag              string `xml:",omitempty"`
	ChecksumCRC32     string `xml:",omitempty"`
	ChecksumCRC32C    string `xml:",omitempty"`
	ChecksumCRC64NVME string `xml:",omitempty"`
	ChecksumMD5       string `xml:",omitempty"`
	ChecksumSHA1      string `xml:",omitempty"`
	ChecksumSHA256    string `xml:",omitempty"`
	ChecksumSHA512    string `xml:",omitempty"`
	ChecksumXXHASH64  string `xml:",omitempty"`
	ChecksumXXHASH3   string `xml:",omitempty"`
	ChecksumXXHASH128 string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
}

// Set has a checksum of an algorithm, and of a type.
func (s *Sums) Set(name, sum, kind string) { *s.Of(name), s.ChecksumType = sum, kind }

// Of is the place of the checksum of an algorithm.
func (s *Sums) Of(name string) *string {
	switch name {
	case "crc32":
		return &s.ChecksumCRC32
	case "crc32c":
		return &s.ChecksumCRC32C
	case "crc64nvme":
		return &s.ChecksumCRC64NVME
	case "md5":
		return &s.ChecksumMD5
	case "sha1":
		return &s.ChecksumSHA1
	case "sha256":
		return &s.ChecksumSHA256
	case "sha512":
		return &s.ChecksumSHA512
	case "xxhash64":
		return &s.ChecksumXXHASH64
	case "xxhash3":
		return &s.ChecksumXXHASH3
	default:
		return &s.ChecksumXXHASH128
	}
}

// DeleteRequest asks for DeleteObjects.
type DeleteRequest struct {
	Quiet   bool
	Objects []struct {
		Key              string
		VersionID        string `xml:"VersionId"`
		ETag             string
		LastModifiedTime string
		Size             string
	} `xml:"Object"`
}

// DeleteResult answers DeleteObjects.
type DeleteResult struct {
	XMLName xml.Name       `xml:"http://s3.amazonaws.com/doc/2006-03-01/ DeleteResult"`
	Deleted []DeletedEntry `xml:"Deleted"`
	Errors  []DeleteError  `xml:"Error"`
}

// DeletedEntry is an object that is gone.
type DeletedEntry struct {
	Key       string
	VersionID string `xml:"VersionId,omitempty"`
}

// DeleteError says why an object is not.
type DeleteError struct {
	Key     string
	Code    string
	Message string
}

// Attributes answers GetObjectAttributes.
type Attributes struct {
	XMLName      xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ GetObjectAttributesResponse"`
	ETag         string   `xml:",omitempty"`
	Checksum     *Sums
	ObjectParts  *PartsCount
	StorageClass string `xml:",omitempty"`
	ObjectSize   *int64
}

// PartsCount says in how many parts an object was put.
type PartsCount struct {
	TotalPartsCount int64 `xml:"PartsCount"`
}

// TaggingResult answers GetObjectTagging.
type TaggingResult struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ Tagging"`
	TagSet  struct {
		Tag []Tag
	}
}

// CopyResult answers CopyObject and UploadPartCopy.
type CopyResult struct {
	XMLName      xml.Name
	LastModified string
	Sums
}

// PostResult answers a form that asks for it.
type PostResult struct {
	XMLName  xml.Name `xml:"PostResponse"`
	Location string
	Bucket   string
	Key      string
	ETag     string
}

// Tag is one of an object.
type Tag struct{ Key, Value string }

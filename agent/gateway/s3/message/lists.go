package message

import "encoding/xml"

// ListResult answers ListObjects and ListObjectsV2.
type ListResult struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name                  string
	Prefix                string
	Marker                *string
	NextMarker            string  `xml:",omitempty"`
	StartAfter            string  `xml:",omitempty"`
	ContinuationToken     *string // as it was given
	NextContinuationToken string  `xml:",omitempty"`
	KeyCount              *int
	MaxKeys               int
	Delimiter             string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	IsTruncated           bool
	Contents              []ListedObject
	CommonPrefixes        []CommonPrefix
}

// ListedObject is an object of a listing.
type ListedObject struct {
	Key               string
	LastModified      string
	ETag              string
	ChecksumAlgorithm []string `xml:",omitempty"`
	ChecksumType      string   `xml:",omitempty"`
	Size              int64
	Owner             *Owner
	StorageClass      string
}

// CommonPrefix stands for all keys that begin with it.
type CommonPrefix struct{ Prefix string }

// VersionsResult answers ListObjectVersions.
type VersionsResult struct {
	XMLName             xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListVersionsResult"`
	Name                string
	Prefix              string
	KeyMarker           string
	VersionIDMarker     string `xml:"VersionIdMarker"`
	NextKeyMarker       string `xml:",omitempty"`
	NextVersionIDMarker string `xml:"NextVersionIdMarker,omitempty"`
	MaxKeys             int
	Delimiter           string `xml:",omitempty"`
	EncodingType        string `xml:",omitempty"`
	IsTruncated         bool
	Version             []ListedVersion
	CommonPrefixes      []CommonPrefix
}

// ListedVersion is a version of a listing.
type ListedVersion struct {
	ListedObject
	VersionID string `xml:"VersionId"`
	IsLatest  bool
}

// Owner is whose something is.
type Owner struct {
	ID          string
	DisplayName string
}

// ListBucketsResult answers ListBuckets.
type ListBucketsResult struct {
	XMLName           xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListAllMyBucketsResult"`
	Owner             Owner
	Buckets           []BucketEntry `xml:"Buckets>Bucket"`
	ContinuationToken string        `xml:",omitempty"`
	Prefix            string        `xml:",omitempty"`
}

// BucketEntry is a bucket of a listing.
type BucketEntry struct {
	Name         string
	CreationDate string
}

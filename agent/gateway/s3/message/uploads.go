package message

import "encoding/xml"

// CreateUploadResult answers CreateMultipartUpload.
type CreateUploadResult struct {
	XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
	Bucket   string
	Key      string
	UploadID string `xml:"UploadId"`
}

// ListPartsResult answers ListParts.
type ListPartsResult struct {
	XMLName              xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListPartsResult"`
	Bucket               string
	Key                  string
	UploadID             string `xml:"UploadId"`
	PartNumberMarker     int
	NextPartNumberMarker int
	MaxParts             int
	IsTruncated          bool
	Part                 []ListedPart
	Initiator            Owner
	Owner                Owner
	StorageClass         string
	ChecksumAlgorithm    string `xml:",omitempty"`
	ChecksumType         string `xml:",omitempty"`
}

// ListedPart is a part of a listing.
type ListedPart struct {
	PartNumber   int
	LastModified string
	Size         int64
	Sums
}

// ListUploadsResult answers ListMultipartUploads.
type ListUploadsResult struct {
	XMLName            xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListMultipartUploadsResult"`
	Bucket             string
	KeyMarker          string
	UploadIDMarker     string `xml:"UploadIdMarker"`
	NextKeyMarker      string `xml:",omitempty"`
	NextUploadIDMarker string `xml:"NextUploadIdMarker,omitempty"`
	Delimiter          string `xml:",omitempty"`
	Prefix             string
	MaxUploads         int
	EncodingType       string `xml:",omitempty"`
	IsTruncated        bool
	Upload             []ListedUpload
	CommonPrefixes     []CommonPrefix
}

// ListedUpload is an upload of a listing.
type ListedUpload struct {
	Key               string
	UploadID          string `xml:"UploadId"`
	Initiator         Owner
	Owner             Owner
	StorageClass      string
	Initiated         string
	ChecksumAlgorithm string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
}

// CompleteRequest asks for CompleteMultipartUpload.
type CompleteRequest struct {
	XMLName xml.Name `xml:"CompleteMultipartUpload"`
	Part    []CompletePart
}

// CompletePart is a part that is asked for.
type CompletePart struct {
	PartNumber int
	Sums
}

// CompleteResult answers CompleteMultipartUpload.
type CompleteResult struct {
	XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
	Location string
	Bucket   string
	Key      string
	Sums
}

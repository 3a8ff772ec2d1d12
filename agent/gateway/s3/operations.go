package s3

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// operation is one of S3's.
type operation struct {
	name  string // as S3 calls it
	serve func(ctx context.Context, q *request) error
}

// entry is an operation, and which requests ask for it: those of a method that have a parameter, or a header.
type entry struct {
	method    string
	parameter string // empty: none
	header    string // empty: none
	operation
}

func (e *entry) isAsked(q *request) bool {
	return e.method == q.Method && (e.parameter == "" || q.query.has(e.parameter)) && (e.header == "" || q.Header.Get(e.header) != "")
}

// Of the operations on one kind of target the first is carried out that is asked for.
var (
	onService = []entry{
		{"GET", "", "", operation{"ListBuckets", listBuckets}},
	}
	onBucket = []entry{
		{"GET", "location", "", operation{"GetBucketLocation", getLocation}},
		{"GET", "uploads", "", operation{"ListMultipartUploads", listUploads}},
		{"GET", "versions", "", operation{"ListObjectVersions", listVersions}},
		{"GET", "list-type", "", operation{"ListObjectsV2", listObjects}},
		{"POST", "delete", "", operation{"DeleteObjects", deleteObjects}},
	}
	onBucketAlone = []entry{
		{"GET", "", "", operation{"ListObjects", listObjects}},
		{"HEAD", "", "", operation{"HeadBucket", headBucket}},
		{"PUT", "", "", operation{"CreateBucket", createBucket}},
		{"DELETE", "", "", operation{"DeleteBucket", deleteBucket}},
		{"POST", "", "", operation{"PostObject", postObject}},
	}
	onObject = []entry{
		{"GET", "attributes", "", operation{"GetObjectAttributes", getAttributes}},
		{"GET", "tagging", "", operation{"GetObjectTagging", getTagging}},
		{"PUT", "tagging", "", operation{"PutObjectTagging", putTagging}},
		{"DELETE", "tagging", "", operation{"DeleteObjectTagging", deleteTagging}},
		{"POST", "uploads", "", operation{"CreateMultipartUpload", createUpload}},
		{"PUT", "uploadId", "X-Amz-Copy-Source", operation{"UploadPartCopy", copyPart}},
		{"PUT", "uploadId", "", operation{"UploadPart", putPart}},
		{"GET", "uploadId", "", operation{"ListParts", listParts}},
		{"POST", "uploadId", "", operation{"CompleteMultipartUpload", completeUpload}},
		{"DELETE", "uploadId", "", operation{"AbortMultipartUpload", abortUpload}},
	}
	onObjectAlone = []entry{
		{"PUT", "", "X-Amz-Copy-Source", operation{"CopyObject", copyObject}},
		{"GET", "", "", operation{"GetObject", getObject}},
		{"HEAD", "", "", operation{"HeadObject", getObject}},
		{"PUT", "", "", operation{"PutObject", putObject}},
		{"DELETE", "", "", operation{"DeleteObject", deleteObject}},
	}
)

// find returns the operation that a request asks for, or one that says why there is none.
func (q *request) find() operation {
	switch {
	case q.bucket == "":
		return q.first(nil, nil, onService)
	case q.key == "":
		return q.first(onBucket, absentOfBucket, onBucketAlone)
	default:
		return q.first(onObject, absentOfObject, onObjectAlone)
	}
}

func (q *request) first(special []entry, absent []entry, alone []entry) operation {
	for _, list := range [][]entry{special, absent} {
		for i := range list {
			if list[i].isAsked(q) {
				return list[i].operation
			}
		}
	}
	if unknown := q.subresource(); unknown != "" { // to serve the object in its place would be to say that it was done
		return operation{"unknown", func(context.Context, *request) error {
			return refuse(invalidRequest, "the parameter %s is none of what can be asked for of this with %.20s", unknown, q.Method)
		}}
	}
	for i := range alone {
		if alone[i].isAsked(q) {
			return alone[i].operation
		}
	}
	return operation{"unknown", func(context.Context, *request) error {
		return refuse(methodNotAllowed, "the method %.20q is none of those that this can be asked for with", q.Method)
	}}
}

// subresources are parameters that ask for something else than the object or the bucket that they are with.
var subresources = []string{
	"abac", "accelerate", "acl", "analytics", "append", "attributes", "cors", "delete", "encryption", "intelligent-tiering", "inventory",
	"legal-hold", "lifecycle", "location", "logging", "metadataConfiguration", "metadataInventoryTable", "metadataJournalTable",
	"metadataTable", "metrics",
	"notification", "object-lock", "ownershipControls", "partNumber", "policy", "policyStatus", "publicAccessBlock", "renameObject",
	"replication", "requestPayment", "restore", "retention", "select", "session", "tagging", "torrent", "uploadId", "uploads",
	"versioning",
	"versions", "website",
}

// subresource is a parameter that makes a request one for something that is not served; empty: there is none.
func (q *request) subresource() string {
	isRead := q.Method == http.MethodGet || q.Method == http.MethodHead
	for _, one := range q.query {
		if slices.Contains(subresources, one.name) && !(one.name == "partNumber" && isRead && q.key != "") {
			return one.name
		}
	}
	return ""
}

// absent is a part of S3 that there is not here.
type absent struct {
	parameter string // that asks for it
	name      string // in the names of operations
	text      string // why it is not, and what to do
	none      *code  // what a GET answers where nothing is declared; nil: what empty says
	empty     string // XML that says that nothing is declared; both empty: a GET is refused as well
	gone      bool   // a DELETE finds nothing to be done
	get, put  string // the names of the operations, where they are others
}

func missing(name string) *code { return &code{name, http.StatusNotFound, ""} }

const (
	useUsers  = "rights are given in the gateway's file of users"
	useNone   = "there is no such thing here"
	xmlPrefix = `xmlns="http://s3.amazonaws.com/doc/2006-03-01/"`
)

// absents are what S3 has for buckets and is not here. A GET of what clients ask for by habit says that nothing is declared.
var absents = []absent{
	{parameter: "accelerate", name: "AccelerateConfiguration", text: useNone, empty: "<AccelerateConfiguration " + xmlPrefix + "/>"},
	{parameter: "analytics", name: "AnalyticsConfiguration", text: useNone},
	{parameter: "cors", name: "Cors", text: "browsers of other sites are not let in", none: missing("NoSuchCORSConfiguration"),
		gone: true},
	{
		parameter: "encryption", name: "Encryption", text: "encrypt the stores, or what is put",
		none: missing("ServerSideEncryptionConfigurationNotFoundError"), gone: true,
	},
	{parameter: "intelligent-tiering", name: "IntelligentTieringConfiguration", text: "policies move objects between schemes"},
	{parameter: "inventory", name: "InventoryConfiguration", text: useNone},
	{
		parameter: "lifecycle", name: "LifecycleConfiguration",
		text: "`restripe import s3-lifecycle` makes a policy of one, and `restripe apply` declares it",
		none: missing("NoSuchLifecycleConfiguration"), gone: true,
	},
	{parameter: "logging", name: "Logging", text: useNone, empty: "<BucketLoggingStatus " + xmlPrefix + "/>"},
	{parameter: "metrics", name: "MetricsConfiguration", text: "the gateway's are at /metrics of its HTTP interface"},
	{
		parameter: "notification", name: "NotificationConfiguration", text: useNone,
		empty: "<NotificationConfiguration " + xmlPrefix + "/>",
	},
	{
		parameter: "object-lock", name: "ObjectLockConfiguration", text: useNone,
		none: missing("ObjectLockConfigurationNotFoundError"), get: "GetObjectLockConfiguration", put: "PutObjectLockConfiguration",
	},
	{
		parameter: "ownershipControls", name: "OwnershipControls", text: useUsers,
		none: missing("OwnershipControlsNotFoundError"), gone: true,
	},
	{parameter: "policy", name: "Policy", text: useUsers, none: missing("NoSuchBucketPolicy"), gone: true},
	{parameter: "policyStatus", name: "PolicyStatus", text: useUsers, none: missing("NoSuchBucketPolicy")},
	{
		parameter: "publicAccessBlock", name: "PublicAccessBlock", text: useUsers,
		none: missing("NoSuchPublicAccessBlockConfiguration"), gone: true, get: "GetPublicAccessBlock", put: "PutPublicAccessBlock",
	},
	{
		parameter: "replication", name: "Replication", text: "redundancy is that of the class",
		none: missing("ReplicationConfigurationNotFoundError"), gone: true,
	},
	{
		parameter: "requestPayment", name: "RequestPayment", text: useNone,
		empty: "<RequestPaymentConfiguration " + xmlPrefix + "><Payer>BucketOwner</Payer></RequestPaymentConfiguration>",
	},
	{parameter: "tagging", name: "Tagging", text: "objects have tags, buckets have none", none: missing("NoSuchTagSet"), gone: true},
	{
		parameter: "versioning", name: "Versioning", text: "what is kept of what is put over is what the class of the keys says (keepVersions)",
		empty: "<VersioningConfiguration " + xmlPrefix + "/>",
	},
	{parameter: "website", name: "Website", text: useNone, none: missing("NoSuchWebsiteConfiguration"), gone: true},
}

// absentsOfObjects are those of objects.
var absentsOfObjects = []absent{
	{parameter: "legal-hold", name: "ObjectLegalHold", text: useNone, none: missing("NoSuchObjectLockConfiguration")},
	{parameter: "retention", name: "ObjectRetention", text: useNone, none: missing("NoSuchObjectLockConfiguration")},
	{parameter: "torrent", name: "ObjectTorrent", text: useNone, get: "GetObjectTorrent"},
	{parameter: "restore", name: "Object", text: "every object can be read at once"},
	{parameter: "select", name: "ObjectContent", text: useNone},
	{parameter: "append", name: "Object", text: useNone},
}

var (
	absentOfBucket = append(aclEntries, entriesOf("Bucket", absents)...)
	absentOfObject = append(aclEntries, entriesOf("", absentsOfObjects)...)
	aclEntries     = []entry{
		{"GET", "acl", "", operation{"GetAcl", getACL}},
		{"PUT", "acl", "", operation{"PutAcl", putACL}},
	}
)

func entriesOf(of string, list []absent) (entries []entry) {
	for i := range list {
		a := &list[i]
		named := func(verb, other string) string {
			if other != "" {
				return other
			}
			return verb + of + a.name
		}
		entries = append(entries,
			entry{"GET", a.parameter, "", operation{named("Get", a.get), a.serveGet}},
			entry{"PUT", a.parameter, "", operation{named("Put", a.put), a.refuse}},
			entry{"POST", a.parameter, "", operation{named("Post", ""), a.refuse}},
			entry{"DELETE", a.parameter, "", operation{named("Delete", ""), a.serveDelete}},
		)
	}
	return entries
}

func (a *absent) refuse(ctx context.Context, q *request) error {
	if err := q.seen(ctx); err != nil {
		return err
	}
	return refuse(notImplemented, "%s is not part of this server: %s", a.parameter, a.text)
}

func (a *absent) serveGet(ctx context.Context, q *request) error {
	if a.none == nil && a.empty == "" {
		return a.refuse(ctx, q)
	}
	if err := q.seen(ctx); err != nil {
		return err
	}
	if a.none != nil {
		return refuse(*a.none, "no %s is declared, and none can be: %s", strings.ToLower(a.name), a.text)
	}
	return q.send(http.StatusOK, []byte(a.empty))
}

func (a *absent) serveDelete(ctx context.Context, q *request) error {
	if !a.gone {
		return a.refuse(ctx, q)
	}
	if err := q.seen(ctx); err != nil {
		return err
	}
	return q.done(http.StatusNoContent)
}

// seen refuses a question about a bucket, or an object, that is not there or that the user may do nothing with.
func (q *request) seen(ctx context.Context) error {
	if err := q.meets(); err != nil {
		return err
	}
	if err := q.inBucket(ctx, q.bucket); err != nil || q.key == "" {
		return err
	}
	there, err := q.server.options.Objects.Find(ctx, q.object())
	if err == nil && there == nil {
		err = noKey(q.key)
	}
	return err
}

func noKey(key string) error { return refuse(noSuchKey, "there is no object with the key %.200q", key) }

// ownerID is whose everything is: S3 names an owner of each bucket and object, and here they have none.
const ownerID = "restripe"

// getACL says that whoever owns the object may do everything with it, which is all that S3's lists can say of rights here.
func getACL(ctx context.Context, q *request) error {
	if err := q.seen(ctx); err != nil {
		return err
	}
	const owner = "<ID>" + ownerID + "</ID><DisplayName>" + ownerID + "</DisplayName>"
	return q.send(http.StatusOK, []byte("<AccessControlPolicy "+xmlPrefix+"><Owner>"+owner+"</Owner><AccessControlList><Grant>"+
		`<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser">`+owner+
		"</Grantee><Permission>FULL_CONTROL</Permission></Grant></AccessControlList></AccessControlPolicy>"))
}

// putACL takes what changes nothing.
func putACL(ctx context.Context, q *request) error {
	if err := q.seen(ctx); err != nil {
		return err
	}
	if q.Header.Get("X-Amz-Acl") == "" {
		return refuse(notImplemented, "access control lists are not part of this server: %s", useUsers)
	}
	if err := q.checkUnknown(); err != nil {
		return err
	}
	return q.done(http.StatusOK)
}

// checkUnknown refuses headers that ask for what is not done here: to take such a request would be to say that it is.
func (q *request) checkUnknown() error {
	for name, values := range q.Header {
		lower := strings.ToLower(name)
		value := strings.Join(values, ",")
		why := ""
		switch {
		case lower == "x-amz-acl":
			if value != "private" && value != "bucket-owner-full-control" && value != "bucket-owner-read" {
				why = useUsers
			}
		case strings.HasPrefix(lower, "x-amz-grant-"):
			why = useUsers
		case strings.HasPrefix(lower, "x-amz-server-side-encryption"), strings.HasPrefix(lower,
			"x-amz-copy-source-server-side-encryption"):
			why = "encrypt the stores, or what is put"
		case strings.HasPrefix(lower, "x-amz-object-lock-"), lower == "x-amz-bucket-object-lock-enabled":
			if !strings.EqualFold(value, "false") && !strings.EqualFold(value, "off") {
				why = "nothing is kept from being deleted"
			}
		case lower == "x-amz-object-ownership":
			if value != "BucketOwnerEnforced" {
				why = useUsers
			}
		case lower == "x-amz-write-offset-bytes":
			why = useNone
		}
		if why != "" {
			return refuse(notImplemented, "the header %s: %.80s is not part of this server: %s", lower, value, why)
		}
	}
	return nil
}

// Package s3 serves the objects of a gateway to clients of S3: those whose keys begin with a bucket's name and a slash are in that
// bucket. It verifies signatures (Version 4) and whatever digests a client gives, before an object is committed.
package s3

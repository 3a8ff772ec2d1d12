// Package importer translates what other systems declare into objects of Restripe: the lifecycle of an S3 bucket, and
// an erasure-code profile with a pool of Ceph. What has no counterpart is not left out silently: it is listed, by the
// name it has in the input, with the reason.
package importer

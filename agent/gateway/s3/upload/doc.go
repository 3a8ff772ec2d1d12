// Package upload keeps uploads in parts: what is known of each, and the bytes of its parts, among the objects of a gateway. What clients
// ask for, and what they are answered, is not its concern.
//
// An upload is an object that says what becomes of it, and an object for each part. Their keys begin with Prefix, the bucket and the key
// that the upload is for, so that no bucket has them, and uploads of a bucket are found in the order of their keys and then of when they
// began. All expire together if the upload is not completed.
package upload

// Package form reads the forms by which browsers put objects (POST of "multipart/form-data"), and holds them to the policy that whoever
// signed them wrote: "POST Object" and "POST Policy" of the Amazon S3 API Reference have both. Whose signature it is, and what becomes of
// the file, is not its concern.
package form

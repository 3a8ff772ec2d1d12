// Package access says who calls and what they may do. Three ways to know people: Local takes everybody for the user of
// this machine, with every verb, and is for loopback alone; Tokens knows people by bearer tokens of a file; Cluster asks
// Kubernetes (TokenReview and SubjectAccessReview), so that nobody may do more here than there.
package access

// Package console is the server behind the web and the terminal: it sees and steers what the operator and the gateways
// do. It keeps no state of its own but the audit log and a bounded history.
//
// What it knows it has from two sources: a mirror of the declared objects, kept by watching the API server, and an observer
// of each backend, which asks the gateways that the StorageBackend names. Answers are made of what these have at hand, so
// that no view waits for a gateway that is gone; each says since when and why a source has been silent. Only what people
// do, plan or search asks gateways directly.
//
// Every call passes one interceptor, which looks up in one table which verb it needs. Every change passes auditing.act,
// which writes the audit log before and after; what cannot be recorded is not done.
package console

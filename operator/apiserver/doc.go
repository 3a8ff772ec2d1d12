// Package apiserver is a Kubernetes API server inside this process: etcd and the server of CustomResourceDefinitions,
// from the same Go modules that Kubernetes is made of, with the kinds of Restripe installed. kubectl and every other
// client of Kubernetes can talk to it, by the kubeconfig it writes.
//
// It serves nothing else. There are no namespaces, no RBAC (who has the token may do everything) and no admission
// webhooks. There are no Events: what happened is in the conditions of the objects. There are no Leases: operators on
// one machine elect their leader by a lock file.
//
// Etcd keeps the state in the directory of the server and syncs every write before it is acknowledged; it listens on a
// socket in that directory alone.
package apiserver

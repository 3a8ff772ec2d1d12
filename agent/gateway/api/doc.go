// Package api is the contract between gateways and who calls them: the routes of the HTTP interface, the values that
// travel over it, the codes of refusals, and the specification of a class of objects with its limits. It knows nothing of
// how a gateway does what it is asked; [client] speaks it, and so does whoever reads its JSON.
//
// Sizes are in bytes, durations in seconds where they are numbers, and times in UTC. Fields are added, never given
// another meaning.
//
// [client]: https://pkg.go.dev/github.com/restripe/restripe/agent/gateway/client
package api

// Command control measures what the operator costs: a thousand policies on a backend of a hundred nodes, declared,
// looked at, edited and carried out against a real API server, with gateways that only count (gatewaysfake); and a class
// of ten million objects next to one of a thousand.
//
// The API server is a process of its own, so that processor time and memory are the operator's and the gateways' that
// are in memory with it.
package main

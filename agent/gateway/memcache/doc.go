// Package memcache serves the values of a gateway to unchanged clients of memcached: its text protocol, and its meta protocol, as
// memcached 1.6 speaks them. Where a value lies, how long it lives and who may do what with it is the gateway's business; what
// memcached does that a gateway cannot is refused in the words of the protocol.
package memcache

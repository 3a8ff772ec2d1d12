// Package resp serves the gateway's objects to clients of Redis, in versions 2 and 3 of its protocol. A value of Redis is an object, of
// the type that Redis calls a string; there are no others.
package resp

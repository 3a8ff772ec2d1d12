// Package redis keeps values as strings of one database of one Redis or Valkey server (2.6 or later).
//
// A value is the string "restripe.value/" and its key, written with SET NX. Redis may be told to keep acknowledged
// values over a power failure (appendonly yes, appendfsync always), and may be told to evict; Info says which.
package redis

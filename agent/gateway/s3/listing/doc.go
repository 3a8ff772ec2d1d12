// Package listing finds what is in buckets: objects and common prefixes of their keys, versions of objects, and the buckets themselves.
// It seeks from one to the next; nothing counts or reads what is passed by.
package listing

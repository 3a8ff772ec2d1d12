// Package values is what the key-value protocols of a gateway do with objects, each of them one value that is read and written whole:
// who a client is and what it may do, one value or many, changes that depend on what is there, and transactions.
package values

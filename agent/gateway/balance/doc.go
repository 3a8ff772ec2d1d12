// Package balance moves blocks between nodes until each holds about its share of all bytes, by what its store can hold. What is moved is
// planned from the group records; a slot is copied and keeps its column, so parities stay as they are.
package balance

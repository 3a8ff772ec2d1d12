// Package object is what clients do with objects: put, read, update, describe, list and delete them. Small objects that
// arrive together share a group; large ones have groups of their own; reads go around blocks that are late or lost.
package object

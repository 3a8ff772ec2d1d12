// Package server is the HTTP interface of a gateway: it turns the requests of package api into calls of the rooms that do
// the work, and their errors into statuses and codes.
package server

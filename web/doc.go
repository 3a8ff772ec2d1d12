// Package web holds the web interface: the pages that a browser shows, in TypeScript under src, and in Go the way into the
// program for what is built of them.
package web

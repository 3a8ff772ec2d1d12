// Package server starts real memcached and Redis servers for tests, each on a free port of the loopback interface and
// with contents of its own, and ends them with the test.
package server

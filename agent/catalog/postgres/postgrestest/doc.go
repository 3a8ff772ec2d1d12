// Package postgrestest starts real PostgreSQL servers for tests, each on a free port of the loopback interface and with contents of its
// own, and ends them with the test. What it knows of their programs and processes is of use to tests that start servers elsewhere.
package postgrestest

// Package postgres keeps a catalog in a schema of a PostgreSQL database, for several gateways.
package postgres

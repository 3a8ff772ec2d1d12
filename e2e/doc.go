// Package e2e holds scenarios over real processes: agents, gateways, memcached and Redis servers started and killed by
// the tests, and the rules of the repository that can be checked by running them.
package e2e

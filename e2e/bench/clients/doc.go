// Command clients measures a gateway by the protocols of Redis, memcached and HTTP: values a second beside a plain Redis, a plain
// memcached and twemproxy in the same minutes.
package main

// Package open turns the address of a store into the store:
//
//	file:/var/lib/restripe                a directory; made if it is absent
//	memcached://host:11211                a memcached server
//	redis://user:password@host:6379/0     a Redis or Valkey server, database 0
//	rediss://host:6380/0?ca=/etc/ca.pem   the same over TLS; ca, cert and key name PEM files, all optional
//	ceph:pool?conf=/etc/ceph/ceph.conf    a pool of Ceph; conf, keyring and user are all optional
//	mem:                                  the memory of this process
package open

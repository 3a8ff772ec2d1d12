"""A value over TLS by redis-py and by pymemcache, with an access key: HOST:PORT HOST:PORT CA ID SECRET.

Prints for each protocol whether the value was stored, or the key is not known, or its user is not allowed to.
"""
import ssl
import sys

import redis
from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheClientError

redis_at, memcached_at, authority, name, secret = sys.argv[1:]


def by_redis():
    host, port = redis_at.rsplit(":", 1)
    r = redis.Redis(host=host, port=int(port), ssl=True, ssl_ca_certs=authority, username=name, password=secret, socket_timeout=60)
    try:
        r.set("users/redis-py", "one")
    except redis.AuthenticationError:
        return "not known"
    except redis.exceptions.NoPermissionError:
        return "not allowed"
    return "stored" if r.get("users/redis-py") == b"one" else "lost"


def by_memcached():
    host, port = memcached_at.rsplit(":", 1)
    c = Client((host, int(port)), timeout=60, default_noreply=False, tls_context=ssl.create_default_context(cafile=authority))
    try:
        c.set("authentication", f"{name} {secret}")
    except MemcacheClientError:
        return "not known"
    try:
        c.set("users/pymemcache", b"one")
    except MemcacheClientError:
        return "not allowed"
    return "stored" if c.get("users/pymemcache") == b"one" else "lost"


print("redis:", by_redis(), "memcached:", by_memcached())

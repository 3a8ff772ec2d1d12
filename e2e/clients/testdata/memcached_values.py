"""Values, cas, counters and noreply by pymemcache, by a client of one server and by one of several: HOST:PORT... Prints done."""
import sys

from pymemcache.client.base import Client
from pymemcache.client.hash import HashClient
from pymemcache.exceptions import MemcacheClientError, MemcacheServerError

servers = sys.argv[1:]


def same(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got!r}, want {want!r}")


def use(c, prefix):
    """Uses a client, with keys that begin with the prefix."""
    key = prefix.__add__
    same("set", c.set(key("a"), b"one", noreply=False), True)
    same("get", c.get(key("a")), b"one")
    same("get of nothing", c.get(key("none")), None)
    same("add", c.add(key("a"), b"no", noreply=False), False)
    same("replace of nothing", c.replace(key("none"), b"no", noreply=False), False)
    same("append", c.append(key("a"), b" two", noreply=False), True)
    same("prepend", c.prepend(key("a"), b"zero ", noreply=False), True)
    value, token = c.gets(key("a"))
    same("gets", value, b"zero one two")
    same("cas", c.cas(key("a"), b"new", token, noreply=False), True)
    same("cas with an old token", c.cas(key("a"), b"newer", token, noreply=False), False)
    same("cas of nothing", c.cas(key("none"), b"new", token, noreply=False), None)
    same("get after cas", c.get(key("a")), b"new")
    c.set(key("n"), b"41", noreply=False)
    same("incr", c.incr(key("n"), 1), 42)
    same("decr", c.decr(key("n"), 43), 0)
    same("incr of nothing", c.incr(key("none"), 1), None)
    try:
        c.incr(key("a"), 1)
        sys.exit("incr of what is no number is not refused")
    except MemcacheClientError:
        pass
    same("touch", c.touch(key("a"), 100, noreply=False), True)
    same("touch of nothing", c.touch(key("none"), 100, noreply=False), False)
    many = {key(f"many/{i:02}"): str(i).encode() for i in range(50)}
    same("set_many", c.set_many(many, noreply=False), [])
    same("get_many", c.get_many(list(many) + [key("none")]), many)
    found = c.gets_many(list(many))
    same("gets_many", {k: v for k, (v, _) in found.items()}, many)
    # Without a reply; what the same connection asks next comes after it.
    for i in range(20):
        c.set(key("quiet"), str(i).encode(), noreply=True)
    same("get after noreply", c.get(key("quiet")), b"19")
    c.delete(key("quiet"), noreply=True)
    same("get after delete with noreply", c.get(key("quiet")), None)
    same("delete", c.delete(key("a"), noreply=False), True)
    same("delete of nothing", c.delete(key("a"), noreply=False), False)
    same("set that has expired", c.set(key("old"), b"x", expire=-1, noreply=False), True)
    same("get of what has expired", c.get(key("old")), None)


host, port = servers[0].rsplit(":", 1)
one = Client((host, int(port)), timeout=60, connect_timeout=60, default_noreply=False)
use(one, "pymemcache/one/")
same("version", one.version().startswith(b"1.6.18"), True)
same("flags", one.set("pymemcache/flags", b"x", flags=5), True)
large = bytes(range(256)) * (8 << 10)
same("set of 2 MiB", one.set("pymemcache/large", large), True)
same("get of 2 MiB", one.get("pymemcache/large") == large, True)
most = one.stats("settings")[b"item_size_max"]
try:
    one.set("pymemcache/large", bytes(int(most) + 1))
    sys.exit(f"a value of more than {most} bytes is not refused")
except MemcacheServerError:
    pass
same("get after what was refused", one.get("pymemcache/flags"), b"x")

several = HashClient(servers, timeout=60, connect_timeout=60, use_pooling=True)
use(several, "pymemcache/several/")
# All servers have the same values, whichever of them a key is sent to.
same("a value of another server", one.get("pymemcache/several/many/07"), b"7")
print("done")

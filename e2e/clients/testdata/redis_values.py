"""Strings, expiry, pipelines, transactions and scans by redis-py: HOST PORT PROTOCOL. Prints done."""
import sys
import time

import redis

host, port, protocol = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
r = redis.Redis(host=host, port=port, protocol=protocol, socket_timeout=60)
prefix = f"redis-py/{protocol}/"


def key(name):
    return prefix + name


def same(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got!r}, want {want!r}")


same("ping", r.ping(), True)
binary = bytes(range(256)) * 100
same("set", r.set(key("a"), binary), True)
same("get", r.get(key("a")), binary)
same("get of nothing", r.get(key("none")), None)
same("set nx", r.set(key("a"), "no", nx=True), None)
same("set xx get", r.set(key("a"), "yes", xx=True, get=True), binary)
same("getrange", r.getrange(key("a"), 1, 2), b"es")
same("append", r.append(key("a"), "terday"), 9)
same("strlen", r.strlen(key("a")), 9)
same("mset", r.mset({key("b"): 1, key("c"): 2.5}), True)
same("mget", r.mget(key("b"), key("none"), key("c")), [b"1", None, b"2.5"])
same("incr", r.incr(key("b"), 41), 42)
same("incrbyfloat", r.incrbyfloat(key("c"), 0.25), 2.75)
same("exists", r.exists(key("a"), key("b"), key("none")), 2)
same("delete", r.delete(key("a"), key("none")), 1)

# What expires is gone when it has expired.
same("setex", r.set(key("soon"), "x", px=1), True)
deadline = time.monotonic() + 30
while r.exists(key("soon")):
    if time.monotonic() > deadline:
        sys.exit("what lives for a millisecond is there after 30 s")
same("ttl of what is gone", r.ttl(key("soon")), -2)
r.set(key("late"), "x", ex=1000)
same("ttl", 900 < r.ttl(key("late")) <= 1000, True)
same("persist", r.persist(key("late")), True)
same("ttl of what stays", r.ttl(key("late")), -1)

# Replies of a pipeline come in order; in one without a transaction an error is of its command alone.
with r.pipeline(transaction=False) as p:
    for i in range(100):
        p.set(key(f"many/{i:03}"), i)
        p.get(key(f"many/{i:03}"))
    p.lpush(key("list"), "x")
    p.get(key("many/007"))
    replies = p.execute(raise_on_error=False)
same("replies of a pipeline", replies[:200], [reply for i in range(100) for reply in (True, str(i).encode())])
same("the error in a pipeline", isinstance(replies[200], redis.ResponseError), True)
same("what comes after the error", replies[201], b"7")
with r.pipeline() as p:
    p.incr(key("n")).incr(key("n")).get(key("n"))
    same("a transaction", p.execute(), [1, 2, b"2"])

# A transaction whose key was changed meanwhile does not take place; tried anew it does.
other = redis.Redis(host=host, port=port, protocol=protocol)
with r.pipeline() as p:
    tries = 0
    while True:
        tries += 1
        p.watch(key("n"))
        value = int(p.get(key("n")))
        if tries == 1:
            other.incr(key("n"), 10)
        p.multi()
        p.set(key("n"), value * 2)
        try:
            p.execute()
            break
        except redis.WatchError:
            same("the value after a transaction that did not take place", other.get(key("n")), b"12")
same("tries", tries, 2)
same("the value after a transaction", r.get(key("n")), b"24")

same("scan_iter", sorted(r.scan_iter(match=key("many/*"), count=7)), [key(f"many/{i:03}").encode() for i in range(100)])

for call, arguments in ((r.lpush, (key("list"), "x")), (r.hset, (key("hash"), "f", "v")), (r.flushall, ())):
    try:
        call(*arguments)
    except redis.ResponseError:
        continue
    sys.exit(f"{call.__name__} is not refused")
same("what flushall did not delete", r.get(key("n")), b"24")
print("done")

"""Stores values over several servers, of which one dies: HOST:PORT...

Prints begun when all servers are in use, is told of the death by a line, and prints done when it has stored as many values again and
has read all of them.
"""
import sys
import threading
import time

from pymemcache.client.hash import HashClient
from pymemcache.exceptions import MemcacheError

ROUND = 200
PATIENCE = 100

told = threading.Event()
threading.Thread(target=lambda: sys.stdin.readline() and told.set(), daemon=True).start()
c = HashClient(sys.argv[1:], timeout=60, connect_timeout=60, retry_attempts=1, retry_timeout=0, dead_timeout=600)
failures = 0


def surely(do):
    """Does what can be done again until it is acknowledged."""
    global failures
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return do()
        except (OSError, MemcacheError):
            failures += 1
            if time.monotonic() > deadline:
                raise


values = {}


def store():
    key = f"goes-on/memcached/{len(values):06}"
    value = str(len(values) * 7).encode()
    if not surely(lambda: c.set(key, value, noreply=False)):
        sys.exit(f"{key} is not stored")
    values[key] = value


while len(values) < ROUND:
    store()
print("begun", flush=True)
while not told.is_set():
    store()
for _ in range(ROUND):
    store()
for key, value in values.items():
    got = surely(lambda: c.get(key))
    if got != value:
        sys.exit(f"{key} reads {got!r}, want {value!r}")
if failures == 0:
    sys.exit("no call failed: the server that died was not in use")
print(f"done: {len(values)} values, {failures} calls that failed")

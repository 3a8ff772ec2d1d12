"""Counts at one of two servers, and goes on at the other when that one dies: HOST:PORT HOST:PORT.

Prints begun when it has counted, is told of the death by a line, and prints done when it has counted as far again and the number fits
what was acknowledged.
"""
import sys
import threading
import time

import redis

ROUND = 200
PATIENCE = 100

told = threading.Event()
threading.Thread(target=lambda: sys.stdin.readline() and told.set(), daemon=True).start()
addresses = [address.rsplit(":", 1) for address in sys.argv[1:]]
acknowledged = unsure = moves = 0
at = None


def connect():
    host, port = addresses[moves % len(addresses)]
    return redis.Redis(host=host, port=int(port), socket_timeout=60, retry=None)


def count():
    global acknowledged, unsure, moves, at
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            at = at or connect()
            number = at.incr("goes-on/redis")
            acknowledged += 1
            if not acknowledged <= number <= acknowledged + unsure:
                sys.exit(f"the number is {number} after {acknowledged} acknowledged and {unsure} unsure additions")
            return
        except (redis.ConnectionError, redis.TimeoutError):
            unsure += 1
            moves += 1
            at = None
            if time.monotonic() > deadline:
                raise


while acknowledged < ROUND:
    count()
print("begun", flush=True)
while not told.is_set():
    count()
for _ in range(ROUND):
    count()
if moves == 0:
    sys.exit("no call failed: the server that died was not in use")
print(f"done: {acknowledged} acknowledged, {unsure} unsure")

"""Stores objects behind an address that leads to one of two gateways, of which one dies; boto3 tries again by itself: URL.

Prints begun when it stores, is told of the death by a line, and prints done when it has stored as many again and has read all of them,
and a text that was added to under a condition has each addition once.
"""
import hashlib
import io
import sys
import threading

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

ROUND = 30
BUCKET = "goes-on"

told = threading.Event()
threading.Thread(target=lambda: sys.stdin.readline() and told.set(), daemon=True).start()


def client():
    return boto3.session.Session().client("s3", endpoint_url=sys.argv[1], config=Config(
        s3={"addressing_style": "path"}, read_timeout=60, retries={"mode": "standard", "max_attempts": 8}))


def content(key):
    return hashlib.shake_128(key.encode()).digest(20_000)


class Worker(threading.Thread):
    """Does what act does over and over: a few times, until it is told, and a few times more. Then it looks whether all is there."""

    def __init__(self):
        super().__init__()
        self.c, self.begun, self.count, self.error, self.note = client(), threading.Event(), 0, None, ""

    def run(self):
        try:
            after = 0
            while after < ROUND:
                after += told.is_set()
                self.act()
                self.count += 1
                if self.count == ROUND:
                    self.begun.set()
            self.look()
        except BaseException as e:
            self.error = e
            self.begun.set()


class Storing(Worker):
    def __init__(self, number):
        super().__init__()
        self.number, self.retries = number, 0

    def act(self):
        key = f"{self.number}/{self.count:06}"
        answer = self.c.put_object(Bucket=BUCKET, Key=key, Body=content(key))
        self.retries += answer["ResponseMetadata"]["RetryAttempts"]

    def look(self):
        for i in range(self.count):
            key = f"{self.number}/{i:06}"
            if self.c.get_object(Bucket=BUCKET, Key=key)["Body"].read() != content(key):
                raise AssertionError(f"{key} does not read as it was stored")
        self.note = f"{self.count} objects, {self.retries} tries again"


class Adding(Worker):
    """Adds to a text, each time over what it has read. What was refused though it took effect is found in the text."""

    def __init__(self):
        super().__init__()
        self.found = 0
        self.c.put_object(Bucket=BUCKET, Key="text", Body=b"")

    def act(self):
        line = b"%d\n" % self.count
        while True:
            now = self.c.get_object(Bucket=BUCKET, Key="text")
            text = now["Body"].read()
            if text.endswith(b"\n" + line) or text == line:  # by a try whose answer was lost
                self.found += 1
                return
            try:
                self.c.put_object(Bucket=BUCKET, Key="text", Body=text + line, IfMatch=now["ETag"])
                return
            except ClientError as e:
                if e.response["Error"]["Code"] != "PreconditionFailed":
                    raise

    def look(self):
        text = self.c.get_object(Bucket=BUCKET, Key="text")["Body"].read()
        if text != b"".join(b"%d\n" % i for i in range(self.count)):
            raise AssertionError(f"after {self.count} additions the text is {text!r}")
        self.note = f"{self.count} additions, {self.found} of them found made"


client().create_bucket(Bucket=BUCKET)
workers = [Storing(0), Storing(1), Adding()]
for worker in workers:
    worker.start()
for worker in workers:
    worker.begun.wait()
if not any(worker.error for worker in workers):
    print("begun", flush=True)

    # An upload in parts goes on, too.
    large = hashlib.shake_128(b"a large object").digest((11 << 20) + 1)
    c = client()
    while True:
        last = told.is_set()
        c.upload_fileobj(io.BytesIO(large), BUCKET, "large", Config=TransferConfig(
            multipart_threshold=5 << 20, multipart_chunksize=5 << 20, max_concurrency=3))
        if c.get_object(Bucket=BUCKET, Key="large")["Body"].read() != large:
            raise AssertionError("what was uploaded in parts does not read as it was stored")
        if last:
            break
for worker in workers:
    worker.join()
    if worker.error:
        raise worker.error
print("done: " + "; ".join(worker.note for worker in workers))

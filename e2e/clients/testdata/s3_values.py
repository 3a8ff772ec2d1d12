"""Objects by boto3: put, read, listed, copied, put under conditions, uploaded in parts, by signed addresses and forms, deleted: URL [CA].

The key is that of the environment. Prints done.
"""
import base64
import hashlib
import io
import ssl
import sys
import urllib.error
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

url, authority = sys.argv[1], (sys.argv[2:] or [None])[0]
BUCKET = "boto3-" + ("tls" if authority else "plain")
c = boto3.client(
    "s3", endpoint_url=url, verify=authority,
    config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, read_timeout=60, retries={"max_attempts": 1}),
)


def same(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got!r:.300}, want {want!r:.300}")


def refused(what, code, call, **arguments):
    try:
        call(Bucket=BUCKET, **arguments)
    except ClientError as e:
        return same(what, e.response["Error"]["Code"], code)
    sys.exit(f"{what}: it is not refused")


def read(key, **arguments):
    return c.get_object(Bucket=BUCKET, Key=key, **arguments)["Body"].read()


c.create_bucket(Bucket=BUCKET)
same("the bucket is listed", BUCKET in [b["Name"] for b in c.list_buckets()["Buckets"]], True)
c.head_bucket(Bucket=BUCKET)

# What is put comes back: bytes, type and metadata, under any key.
contents = {}
for key, size in (("empty", 0), ("letters/a", 1), ("letters/b c+d%2F&e=ü", 5_000), ("letters//..//x", 200), ("large", 300_000)):
    data = contents[key] = bytes(i * 7 % 251 for i in range(size))
    c.put_object(Bucket=BUCKET, Key=key, Body=data, ContentType="text/x-test", Metadata={"colour": "light blue", "size": str(size)})
    same(f"get of {key}", read(key), data)
    head = c.head_object(Bucket=BUCKET, Key=key)
    same(f"head of {key}", (head["ContentLength"], head["ContentType"], head["Metadata"]),
         (size, "text/x-test", {"colour": "light blue", "size": str(size)}))
    tag = head["ETag"].strip('"')
    same(f"the ETag of {key}", "-" in tag or tag == hashlib.md5(data).hexdigest(), True)
same("a range", read("large", Range="bytes=65530-65549"), contents["large"][65530:65550])
same("a range at the end", read("large", Range="bytes=-3"), contents["large"][-3:])
refused("a range outside", "InvalidRange", c.get_object, Key="large", Range="bytes=300000-300001")
refused("get of nothing", "NoSuchKey", c.get_object, Key="none")
refused("head of nothing", "404", c.head_object, Key="none")

# Checksums of the client's choice are checked, and kept.
for algorithm in ("CRC32", "SHA1", "SHA256"):  # for the others botocore wants modules
    put = c.put_object(Bucket=BUCKET, Key="checked", Body=b"checked", ChecksumAlgorithm=algorithm)
    got = c.head_object(Bucket=BUCKET, Key="checked", ChecksumMode="ENABLED")
    same(f"the checksum {algorithm}", got.get(f"Checksum{algorithm}", "none is kept"), put.get(f"Checksum{algorithm}", "none is answered"))
same("a checksum", got["ChecksumSHA256"], base64.b64encode(hashlib.sha256(b"checked").digest()).decode())
refused("a body that is not what its digest says", "BadDigest", c.put_object, Key="checked", Body=b"another",
        ContentMD5="1B2M2Y8AsgTpgAmY7PhCfg==")
same("what was there before a refused body", read("checked"), b"checked")
c.delete_object(Bucket=BUCKET, Key="checked")

# Listings.
for i in range(25):
    contents[f"many/{i % 5}/{i:02}"] = b"x" * i
    c.put_object(Bucket=BUCKET, Key=f"many/{i % 5}/{i:02}", Body=b"x" * i)
for operation in ("list_objects", "list_objects_v2"):
    def listed(**arguments):
        keys, prefixes = [], []
        for page in c.get_paginator(operation).paginate(Bucket=BUCKET, **arguments):
            keys += [(o["Key"], o["Size"]) for o in page.get("Contents", [])]
            prefixes += [p["Prefix"] for p in page.get("CommonPrefixes", [])]
        return keys, prefixes

    sizes = sorted(((k, len(v)) for k, v in contents.items()), key=lambda o: o[0].encode())
    same(f"{operation}", listed(PaginationConfig={"PageSize": 7}), (sizes, []))
    same(f"{operation} of a prefix", listed(Prefix="many/3/"), ([o for o in sizes if o[0].startswith("many/3/")], []))
    same(f"{operation} with a delimiter", listed(Delimiter="/", PaginationConfig={"PageSize": 2}),
         ([o for o in sizes if "/" not in o[0]], ["letters/", "many/"]))
    same(f"{operation} of a prefix with a delimiter", listed(Prefix="many/", Delimiter="/", PaginationConfig={"PageSize": 2}),
         ([], [f"many/{i}/" for i in range(5)]))

# Copies.
c.copy_object(Bucket=BUCKET, Key="copy", CopySource={"Bucket": BUCKET, "Key": "letters/b c+d%2F&e=ü"})
same("a copy", read("copy"), contents["letters/b c+d%2F&e=ü"])
same("metadata of a copy", c.head_object(Bucket=BUCKET, Key="copy")["Metadata"], {"colour": "light blue", "size": "5000"})
c.copy_object(Bucket=BUCKET, Key="copy", CopySource={"Bucket": BUCKET, "Key": "copy"}, MetadataDirective="REPLACE",
              Metadata={"colour": "red"}, ContentType="text/y-test")
head = c.head_object(Bucket=BUCKET, Key="copy")
same("metadata that was replaced", (head["Metadata"], head["ContentType"], head["ContentLength"]), ({"colour": "red"}, "text/y-test", 5000))

# Conditions.
first = c.put_object(Bucket=BUCKET, Key="once", Body=b"one", IfNoneMatch="*")["ETag"]
refused("put over what is there", "PreconditionFailed", c.put_object, Key="once", Body=b"two", IfNoneMatch="*")
second = c.put_object(Bucket=BUCKET, Key="once", Body=b"three", IfMatch=first)["ETag"]
refused("put over what was changed", "PreconditionFailed", c.put_object, Key="once", Body=b"four", IfMatch=first)
refused("get of what was changed", "PreconditionFailed", c.get_object, Key="once", IfMatch=first)
refused("get of what was not changed", "304", c.get_object, Key="once", IfNoneMatch=second)
same("the one put that was allowed", read("once", IfMatch=second), b"three")

# In parts, and again by ranges.
parts = TransferConfig(multipart_threshold=6 << 20, multipart_chunksize=5 << 20, max_concurrency=4)
large = hashlib.shake_128(b"a large object").digest((13 << 20) + 17)
c.upload_fileobj(io.BytesIO(large), BUCKET, "parts", Config=parts, ExtraArgs={"Metadata": {"parts": "3"}, "ContentType": "text/x-test"})
head = c.head_object(Bucket=BUCKET, Key="parts")
same("what was uploaded in parts", (head["ContentLength"], head["Metadata"], head["ContentType"], head["ETag"][-3:]),
     (len(large), {"parts": "3"}, "text/x-test", '-3"'))
into = io.BytesIO()
c.download_fileobj(BUCKET, "parts", into, Config=parts)
same("what was uploaded in parts reads the same", into.getvalue() == large, True)
upload = c.create_multipart_upload(Bucket=BUCKET, Key="given-up")["UploadId"]
part = c.upload_part(Bucket=BUCKET, Key="given-up", UploadId=upload, PartNumber=1, Body=b"part")
same("parts of an upload", [(p["PartNumber"], p["Size"], p["ETag"]) for p in c.list_parts(Bucket=BUCKET, Key="given-up", UploadId=upload)["Parts"]],
     [(1, 4, part["ETag"])])
same("uploads", [(u["Key"], u["UploadId"]) for u in c.list_multipart_uploads(Bucket=BUCKET)["Uploads"]], [("given-up", upload)])
c.abort_multipart_upload(Bucket=BUCKET, Key="given-up", UploadId=upload)
same("uploads, when it was given up", c.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []), [])
refused("a part of what was given up", "NoSuchUpload", c.upload_part, Key="given-up", UploadId=upload, PartNumber=2, Body=b"part")

# Addresses that are signed, for those who have no key.
context = ssl.create_default_context(cafile=authority) if authority else None
signed = c.generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": "signed"}, ExpiresIn=60)
urllib.request.urlopen(urllib.request.Request(signed, data=b"by an address", method="PUT"), context=context).close()
signed = c.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": "signed"}, ExpiresIn=60)
with urllib.request.urlopen(signed, context=context) as answer:
    same("get by an address", answer.read(), b"by an address")

# Forms that are signed, by which a browser puts a file.
def post(form, data, name="a b.jpg"):
    border = "border-of-a-form"
    lines = [f'--{border}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in form["fields"].items()]
    lines.append(f'--{border}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n')
    body = "".join(lines).encode() + data + f"\r\n--{border}--\r\n".encode()
    request = urllib.request.Request(form["url"], data=body, headers={"Content-Type": f"multipart/form-data; boundary={border}"})
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return answer.status
    except urllib.error.HTTPError as e:
        return e.read().decode().partition("<Code>")[2].partition("</Code>")[0]


form = c.generate_presigned_post(BUCKET, "forms/${filename}", Fields={"Content-Type": "image/x-test", "success_action_status": "201"},
                                 Conditions=[{"Content-Type": "image/x-test"}, {"success_action_status": "201"},
                                             ["content-length-range", 1, 300_000]], ExpiresIn=60)
same("a form", post(form, contents["large"]), 201)
same("what came by a form", read("forms/a b.jpg"), contents["large"])
same("its type", c.head_object(Bucket=BUCKET, Key="forms/a b.jpg")["ContentType"], "image/x-test")
same("a form with a file that is too large", post(form, b"x" * 300_001), "EntityTooLarge")
form["fields"]["Content-Type"] = "text/html"
same("a form that says what its policy does not allow", post(form, b"x"), "AccessDenied")
c.delete_object(Bucket=BUCKET, Key="forms/a b.jpg")

# Deleted, by one and by many.
refused("deleting a bucket with objects", "BucketNotEmpty", c.delete_bucket)
c.delete_object(Bucket=BUCKET, Key="signed")
c.delete_object(Bucket=BUCKET, Key="signed")  # which S3 does not mind
rest = [{"Key": k} for k in [*contents, "parts", "once", "copy", "none"]]
gone = c.delete_objects(Bucket=BUCKET, Delete={"Objects": rest})
same("objects deleted together", (len(gone["Deleted"]), gone.get("Errors", [])), (len(rest), []))
same("what is left", c.list_objects_v2(Bucket=BUCKET).get("Contents", []), [])
c.delete_bucket(Bucket=BUCKET)
refused("a bucket that is gone", "404", c.head_bucket)
refused("a listing of a bucket that is gone", "NoSuchBucket", c.list_objects_v2)
print("done")

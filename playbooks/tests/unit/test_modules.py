"""What modules make of what they are given, without a cluster."""

import gzip
import io
import os
import tarfile
import tempfile
import unittest

from ansible_collections.restripe.storage.plugins.modules import restripe_authority_info, restripe_node, restripe_package_info, restripe_tls

NODES = {
    "n1": {"declared": "up", "state": "up", "address": "a:1"},
    "n2": {"declared": "draining", "state": "draining", "address": "a:2", "drain": {"bytesPerSecond": 50 << 20}},
    "n6": {"declared": "up", "state": "up", "address": "a:6", "replaces": "n3"},
}


def command(**parameters):
    given = {"name": "n1", "state": "up", "replacement": None, "address": None, "domain": None, "rate": None}
    return restripe_node.command_for(dict(given, **parameters), NODES)


class Nodes(unittest.TestCase):
    def test_what_is_so_already_takes_no_command(self):
        for parameters in (
            {},
            {"name": "n2", "state": "draining"},
            {"name": "n2", "state": "draining", "rate": "50MiB/s"},
            {"name": "n2", "state": "draining", "rate": "51200 KiB"},
            {"name": "n9", "state": "removed"},
            {"name": "n3", "state": "replaced", "replacement": "n6", "address": "a:6"},
            {"name": "n1", "state": "replaced", "address": "a:1"},
        ):
            self.assertEqual([], command(**parameters), parameters)

    def test_what_is_otherwise_takes_one(self):
        for parameters, want in (
            ({"state": "draining"}, "node drain n1"),
            ({"name": "n2", "state": "draining", "rate": "unlimited"}, "node drain n2 --rate unlimited"),
            ({"name": "n2", "state": "draining", "rate": "50MB/s"}, "node drain n2 --rate 50MB/s"),
            ({"name": "n2", "state": "draining", "rate": "fast"}, "node drain n2 --rate fast"),
            ({"name": "n2"}, "node undrain n2"),
            ({"state": "removed"}, "node remove n1"),
            ({"state": "replaced", "replacement": "n7", "address": "a:7"}, "node replace n1 --with n7 --address a:7"),
        ):
            self.assertEqual(want, " ".join(command(**parameters)), parameters)

    def test_a_node_that_is_none(self):
        with self.assertRaisesRegex(restripe_node.Refused, "no node n9: the members are n1 n2 n6"):
            command(name="n9", state="draining")


def package(control):
    """Returns a Debian package with only what it says of itself."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        entry = tarfile.TarInfo("./control")
        entry.size = len(control)
        archive.addfile(entry, io.BytesIO(control))
    text = b"!<arch>\n"
    for name, content in ((b"debian-binary", b"2.0\n"), (b"control.tar.gz", gzip.compress(tar.getvalue()))):
        text += b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name, 0, 0, 0, b"100644", len(content)) + content + b"\n" * (len(content) % 2)
    return text


class Packages(unittest.TestCase):
    def look(self, content):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "some.deb")
            if content is not None:
                with open(path, "wb") as file:
                    file.write(content)
            return restripe_package_info.look(path)

    def test_a_package(self):
        found = self.look(package(b"Package: restripe-agent\nArchitecture: arm64\nDescription: blocks\n and: more\n"))
        self.assertEqual(("restripe-agent", "arm64", ""), (found["package"], found["architecture"], found["problem"]))

    def test_what_is_none(self):
        self.assertIn("cannot be read: No such file", self.look(None)["problem"])
        self.assertIn("no package is named", restripe_package_info.look("")["problem"])
        whole = package(b"Package: restripe-agent\n")
        for content in (b"", b"text", b"!<arch>\n", whole[:100], whole):
            self.assertIn("damaged", self.look(content)["problem"], content)


# Of an authority of the cluster blue, until 2020.
EXPIRED = """-----BEGIN CERTIFICATE-----
MIIBfjCCASSgAwIBAgIBTTAKBggqhkjOPQQDAjAYMRYwFAYDVQQDEw1yZXN0cmlw
ZSBibHVlMB4XDTIwMDEwMTAwMDEwMVoXDTIwMDEwMTAxMDEwMVowGDEWMBQGA1UE
AxMNcmVzdHJpcGUgYmx1ZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABH2lCghG
3btg47fGQSS4J6z+qC00uVV3l0vaCtpNCIq8U29IM9meIThpmGpTYV1ETd2W1aBz
BJj3Nw5spq4wOpujXzBdMA4GA1UdDwEB/wQEAwIBBjASBgNVHRMBAf8ECDAGAQH/
AgEAMB0GA1UdDgQWBBQ0thBcI16XVFHOf6l31D6ZpoYmbzAYBgNVHREEETAPhg1z
cGlmZmU6Ly9ibHVlMAoGCCqGSM49BAMCA0gAMEUCIQCn2mz5pF86S3g8j0vgb3ZV
ZvejmLyigPtXsafgeYVSAgIgSkXlmY+nsoLLGq51m5zZw/Y3OEUhoH8GXwL1nKdg
0Vs=
-----END CERTIFICATE-----
"""


class Authorities(unittest.TestCase):
    def look(self, content):
        with tempfile.TemporaryDirectory() as directory:
            if content is not None:
                with open(os.path.join(directory, "ca.crt"), "w") as file:
                    file.write(content)
            return restripe_authority_info.look(directory)

    def test_an_authority(self):
        found = self.look(EXPIRED)
        self.assertEqual((1577840461.0, ""), (found["expires"], found["problem"]))

    def test_what_is_none(self):
        self.assertEqual("", self.look(None)["problem"])  # it is made
        self.assertNotIn("expires", self.look(None))
        for content in ("", "text", EXPIRED[:200]):
            self.assertTrue(self.look(content)["problem"], content)


class Certificates(unittest.TestCase):
    def test_what_another_authority_revoked_goes(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual([], restripe_tls.left_over(directory, {"ca.crt": "new"}))
            path = os.path.join(directory, "ca.crl")
            with open(path, "w") as file:
                file.write("old")
            self.assertEqual([path], restripe_tls.left_over(directory, {"ca.crt": "new"}))
            self.assertEqual([], restripe_tls.left_over(directory, {"ca.crt": "new", "ca.crl": "new"}))


if __name__ == "__main__":
    unittest.main()

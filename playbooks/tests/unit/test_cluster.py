"""What preflight says of an inventory and of machines: every mistake, where it is, and its cure."""

import unittest

from ansible_collections.restripe.storage.plugins.filter import cluster

LIMITS = {"systemd": 247, "clock_seconds": 10, "free_bytes": 1 << 30}
AMD64 = {"path": "agent.deb", "package": "restripe-agent", "architecture": "amd64", "problem": ""}


def sound(**changes):
    """Returns what is told of a machine that has nothing wrong, with changes."""
    found = {
        "clock": 100.5, "before": 100, "listeners": {"7400": ["restripe-agent"]}, "missing_labels": [], "free_bytes": {"/srv": 2 << 30},
        "version": "v1", "architecture": "amd64", "systemd": 252,
    }
    return dict(found, **changes)


def told(hostvars=None, host=None, seen=None, documents=(), classes=()):
    """Returns the mistakes where the first machine is as told, and has two others beside it."""
    hostvars = hostvars or {name: {"agent_domain": name} for name in ("m1", "m2", "m3")}
    hosts = {name: sound() for name in hostvars}
    if host is not None:
        hosts["m1"] = host
    known = dict({"after": 101, "version": "v1", "packages": [AMD64]}, **(seen or {}))
    nodes = cluster.nodes(sorted(hostvars), hostvars)
    return cluster.mistakes(nodes, hosts, {name: known for name in hosts}, list(documents), list(classes), LIMITS)


class Mistakes(unittest.TestCase):
    def says(self, found, *texts):
        """That there is one mistake for each text, which has all of its parts."""
        self.assertEqual(len(texts), len(found), found)
        for parts, one in zip(texts, found):
            for part in parts:
                self.assertIn(part, one)

    def test_none(self):
        self.assertEqual([], told())

    def test_a_machine_that_does_not_answer(self):
        gone = {"unreachable": True, "msg": "Failed to connect to the host via ssh: ssh: connect to host 10.0.0.9 port 22: No route to host"}
        self.says(told(host=gone), ["m1: it does not answer", "No route to host", "correct ansible_host"])

    def test_a_machine_that_lets_nobody_in(self):
        gone = {"unreachable": True, "msg": "Failed to connect to the host via ssh: root@10.0.0.9: Permission denied (publickey)."}
        self.says(told(host=gone), ["m1: it lets nobody in", "ansible_ssh_private_key_file"])

    def test_nobody_becomes_root(self):
        for text in ("Missing sudo password", "Incorrect sudo password", "sudo: a password is required"):
            self.says(told(host={"msg": text}), ["m1: one can log in, and not become root: " + text, "--ask-become-pass"])

    def test_a_machine_without_python(self):
        self.says(told(host={"msg": "MODULE FAILURE", "module_stderr": "/usr/bin/python3: not found"}), ["m1: it cannot be looked at", "not found", "install python3"])

    def test_a_clock(self):
        self.says(told(host=sound(clock=400)), ["m1: its clock is 299 s ahead of that of the controller", "chrony"])
        self.says(told(host=sound(clock=-80)), ["m1: its clock is 180 s behind that of the controller", "chrony"])
        # The answer may have taken long: what is between the looks of the controller is no mistake.
        self.assertEqual([], told(host=sound(clock=150), seen={"after": 200}))

    def test_a_full_disk(self):
        self.says(told(host=sound(free_bytes={"/srv": 5 << 20})), ["m1: /srv has 5 MiB left", "make room for 1024 MiB"])

    def test_a_port(self):
        self.says(told(host=sound(listeners={"7400": ["nginx", "?"]})), ["m1: something, nginx listens on port 7400", "another port"])
        servers = {"servers": {"11211": "memcached"}}
        self.assertEqual([], told(host=sound(listeners={"11211": ["memcached"]}), seen=servers))
        self.says(told(host=sound(listeners={"11211": ["python3"]}), seen=servers), ["m1: python3 listens on port 11211", "give memcached another"])

    def test_a_package(self):
        other = dict(AMD64, architecture="arm64")
        self.says(told(host=sound(version=""), seen={"packages": [other]}), ["m1: agent.deb: the package is for arm64, and the machine is amd64", "program_packages"])
        missing = dict(AMD64, architecture="", problem="it cannot be read: No such file or directory")
        bare = {"m1": {"agent_domain": "a"}, "m2": {"agent_domain": "b"}}
        for host in (sound(version=""), sound()):
            found = told(bare, host=host, seen={"version": "v2", "packages": [missing]})
            self.says(found[:1], ["agent.deb: it cannot be read", "make package"])
            self.assertEqual(1, len([one for one in found if one.startswith("agent.deb")]), found)
        # It is not needed where its version is installed.
        self.assertEqual([], told(seen={"packages": [missing]}))

    def test_versions(self):
        self.says(told(host=sound(version="v0"), seen={"packages": []}), ["versions: v0 on m1, v1 on m2 m3", "upgrade"])

    def test_a_name_used_twice(self):
        hostvars = {"m1": {"agent_domain": "a"}, "m2": {"agent_domain": "b", "agent_nodes": [{"id": "m1"}]}}
        self.says(told(hostvars), ["m1, m2: the name m1 is used 2 times", "an id of its own"])

    def test_domains(self):
        self.says(told({"m1": {"agent_domain": "a"}, "m2": {}}), ["m2: no failure domain, and other nodes have one", "set agent_domain"])
        # Without any each node is its own, which is no mistake while no machine has two.
        self.assertEqual([], told({"m1": {}, "m2": {}}))
        two = {"m1": {"agent_nodes": [{"id": "a"}, {"id": "b"}]}, "m2": {}}
        self.says(told(two), ["m1: its 2 nodes have no failure domain", "set agent_domain for every host"])

    def test_a_ladder(self):
        found = told(classes=[{"name": "files", "ladder": "rep(3),rs(12,2)"}])
        self.says(found, ["class files: rs(12,2) takes 14 nodes, and the inventory has 3", "add nodes"])


class Disks(unittest.TestCase):
    def test_only_what_the_role_takes(self):
        nodes = cluster.nodes(["m1"], {"m1": {"agent_nodes": [{"id": "a", "disk": "restripe-a"}, {"id": "b"}]}})
        self.assertEqual([{"id": "a", "disk": "restripe-a", "directory": "/var/lib/restripe/a"}], cluster.disks(nodes))


class Declarations(unittest.TestCase):
    def test_what_the_server_adds_is_left_out(self):
        metadata = """"name": "files", "uid": "1", "resourceVersion": "7", "labels": {"team": "blue"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "why": "a trial"}"""
        text = '{"items": [{"apiVersion": "restripe.io/v1alpha1", "kind": "RedundancyPolicy", "metadata": {%s}, "spec": {"a": 1}, "status": {}}]}'
        want = {
            "apiVersion": "restripe.io/v1alpha1", "kind": "RedundancyPolicy", "spec": {"a": 1},
            "metadata": {"name": "files", "labels": {"team": "blue"}, "annotations": {"why": "a trial"}},
        }
        self.assertEqual([want], list(cluster.yaml.safe_load_all(cluster.declarations([text % metadata]))))


if __name__ == "__main__":
    unittest.main()

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


def told(hostvars=None, host=None, seen=None, documents=(), classes=(), groups=None):
    """Returns the mistakes where the first machine is as told, and has two others beside it."""
    hostvars = hostvars or {name: {"agent_domain": name} for name in ("m1", "m2", "m3")}
    hosts = {name: sound() for name in hostvars}
    if host is not None:
        hosts["m1"] = host
    known = dict({"after": 101, "version": "v1", "packages": [AMD64]}, **(seen or {}))
    nodes = cluster.nodes(sorted(hostvars), hostvars)
    return cluster.mistakes(nodes, hosts, {name: known for name in hosts}, list(documents), list(classes), LIMITS, groups or {}, hostvars)


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

    def test_an_authority(self):
        def of(**info):
            return cluster.mistakes([], {}, {}, [], [], LIMITS, {}, {}, {"info": dict({"path": "/ca/ca.crt", "problem": ""}, **info), "now": 1000.5})

        self.assertEqual([], of(expires=1001))
        self.assertEqual([], of())  # site makes it
        self.says(of(expires=1000), ["/ca/ca.crt: the authority has expired at 1970-01-01T00:16:40Z", "in pki_authority, where site makes a new one"])
        self.says(of(problem="it cannot be read: Permission denied"), ["/ca/ca.crt: it cannot be read: Permission denied", "pki_authority"])

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


    def catalog(self, gateways=("m1",), etcd=None, **variables):
        """Returns the mistakes where gateways have variables, and etcd is on machines."""
        groups = {"restripe_gateways": list(gateways)}
        if etcd is not None:
            groups["restripe_etcd"] = list(etcd)
        return told({name: dict(variables, agent_domain=name) for name in ("m1", "m2", "m3", "m4")}, groups=groups)

    def test_a_file_for_several_gateways(self):
        self.assertEqual([], self.catalog())
        cure = ["m1, m2: a file is the catalog of one gateway, and the inventory has 2", "restripe_etcd", "Redis, etcd or PostgreSQL"]
        self.says(self.catalog(("m1", "m2")), cure)
        self.says(self.catalog(("m1", "m2"), gateway_catalog="sqlite:/srv/catalog.db"), cure)
        for address in ("etcd://a:1,b:1,c:1", "postgres://restripe@db/restripe", "redis://db:6379"):
            self.assertEqual([], self.catalog(("m1", "m2"), gateway_catalog=address), address)

    def test_members_of_etcd(self):
        self.assertEqual([], self.catalog(("m1", "m2"), etcd=("m1", "m2", "m3")))
        self.says(self.catalog(etcd=("m1", "m2")), ["restripe_etcd: 2 members of etcd survive the loss of no more than 1 would", "three or five"])
        self.says(self.catalog(etcd=("m1", "m2", "m3", "m4")), ["restripe_etcd: 4 members", "three or five"])
        # A group without machines is a mistake, and so is the file that two gateways have for it.
        self.says(self.catalog(("m1", "m2"), etcd=()), ["restripe_etcd: no machine is in this group", "take it out"], ["m1, m2: a file is"])

    def test_an_address(self):
        for address, wrong in (
            ("mysql://u:hidden@db/restripe", "names no engine"), ("mem:", "names no engine"), ("postgres", "names no engine"),
            ("sqlite:catalog.db", "does not begin with /"), ("etcd:a:2379", "it has no //"), ("etcds://a:2379,b", "'b' is not HOST:PORT"),
            ("redis://u:hidden@a b:1", "'a b:1' is not HOST:PORT"), ("postgres://u:hidden@db", "names no database"),
        ):
            found = self.catalog(gateway_catalog=address)
            self.says(found, ["gateway_catalog of m1: ", wrong, "write sqlite:/FILE, redis://"])
            self.assertNotIn("hidden", found[0])
        for address in ("postgres://restripe@a,b:5433/restripe?target_session_attrs=read-write", "rediss://h:1", "etcds://[fd00::1]:2379"):
            self.assertEqual([], self.catalog(gateway_catalog=address), address)

    def test_a_password_of_nobody(self):
        self.says(self.catalog(gateway_catalog="postgres://db/restripe", gateway_catalog_password="hidden"), ["gateway_catalog_password of m1", "write USER@"])

    def test_gateways_with_several_catalogs(self):
        hostvars = {name: {"agent_domain": name, "gateway_catalog": "redis://u:hidden@%s:1" % name} for name in ("m1", "m2", "m3")}
        found = told(hostvars, groups={"restripe_gateways": ["m1", "m2"]})
        self.says(found, ["redis://u@m1:1 of m1, redis://u@m2:1 of m2", "all of them together"])
        self.assertNotIn("hidden", found[0])

    def test_all_at_once(self):
        hostvars = {name: {"agent_domain": name} for name in ("m1", "m2", "m3")}
        found = told(hostvars, host=sound(clock=400), groups={"restripe_gateways": ["m1", "m2"], "restripe_etcd": []})
        self.says(found, ["restripe_etcd: no machine"], ["a file is the catalog"], ["m1: its clock"])


class Catalogs(unittest.TestCase):
    GROUPS = {"restripe_gateways": ["g"], "restripe_etcd": ["a", "b", "c"]}
    HOSTVARS = {"g": {"gateway_id": "gw1"}, "a": {"ansible_host": "10.0.0.1"}, "b": {"program_address": "b.example"}, "c": {}}

    def test_what_the_inventory_says(self):
        self.assertEqual("sqlite:/var/lib/restripe/catalog.db", cluster.catalog("g", {}, self.HOSTVARS))
        files = "/etc/restripe/tls/gateway-gw1/"
        want = "etcds://10.0.0.1:2379,b.example:2379,c:2379?cacert=%sca.crt&cert=%stls.crt&key=%stls.key" % (files, files, files)
        self.assertEqual(want, cluster.catalog("g", self.GROUPS, self.HOSTVARS))
        named = dict(self.HOSTVARS, g={"gateway_id": "gw1", "gateway_catalog_name": "blue"})
        self.assertEqual(want + "&catalog=blue", cluster.catalog("g", self.GROUPS, named))
        other = dict(self.HOSTVARS, g={"gateway_catalog": "postgres://u@db/r", "gateway_catalog_name": "blue"})
        self.assertEqual("postgres://u@db/r?catalog=blue", cluster.catalog("g", self.GROUPS, other))

    def test_a_password(self):
        self.assertEqual("postgres://u:a%2Fb%40c@db/r", cluster.catalog_with("postgres://u@db/r", "a/b@c"))
        self.assertEqual("postgres://u@db/r", cluster.catalog_with("postgres://u@db/r", ""))
        self.assertEqual("rediss://:a%2Fb@db:1?catalog=x", cluster.catalog_with("rediss://db:1?catalog=x", "a/b"))
        self.assertEqual("redis://u@db", cluster.shown_address("redis://u:a@db"))
        self.assertEqual("etcds://a:1,b:2?catalog=x", cluster.shown_address("etcds://a:1,b:2?cert=c&catalog=x&key=k"))

    def test_whether_two_are_one(self):
        for one, other in (
            ("sqlite:/a", "sqlite:/a"), ("etcd://a:1,b:1", "etcds://b:1,c:1?cert=x"), ("postgres://u:x@db/r", "postgresql://w@db/r"),
            ("etcd://a:1", "etcd://a:1/?catalog=restripe"),
        ):
            self.assertTrue(cluster.same_catalog(one, other), (one, other))
        for one, other in (
            ("sqlite:/a", "sqlite:/b"), ("sqlite:/a", "etcd://a:1"), ("etcd://a:1", "etcd://b:1"), ("postgres://db/r", "postgres://db/s"),
            ("etcd://a:1", "etcd://a:1?catalog=blue"),
        ):
            self.assertFalse(cluster.same_catalog(one, other), (one, other))

    def test_who_is_let_in(self):
        def hosts(host, groups, role):
            return [one["hosts"] for one in cluster.certificates(host, groups, self.HOSTVARS) if one["role"] == role]
        groups = dict(self.GROUPS, restripe_agents=["a"])
        self.assertEqual([["127.0.0.1", "g", "localhost", cluster.CATALOG_HOST]], hosts("g", groups, "gateway"))
        self.assertEqual([["10.0.0.1", "127.0.0.1", "a", "localhost", cluster.CATALOG_HOST]], hosts("a", groups, "catalog"))
        self.assertEqual([[]], hosts("a", groups, "agent"))
        for role in ("gateway", "operator", "console"):  # which browsers and Prometheus reach by these names
            self.assertEqual([["127.0.0.1", "g", "localhost"]], hosts("g", {"restripe_%ss" % role: ["g"]}, role))


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

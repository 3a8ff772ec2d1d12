"""What an inventory says of a cluster: its nodes, and the mistakes in it. Nothing here asks anybody; it returns values."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import datetime
import json
import re
from urllib.parse import parse_qs, quote, urlsplit

import yaml
from ansible.errors import AnsibleFilterError

FIRST_PORT = 7400
GATEWAY_PORT = 7480
ETCD_PORT = 2379
ETCD_PEER_PORT = 2380

# The catalog of a gateway where the inventory names none.
CATALOG_FILE = "sqlite:/var/lib/restripe/catalog.db"
# The name in the certificates of gateways and of members of etcd, by which members let them in and nobody else of the cluster.
CATALOG_HOST = "restripe-catalog"
CATALOG_FORMS = "sqlite:/FILE, redis://HOST:PORT, etcd://HOST:PORT,HOST:PORT or postgres://USER@HOST:PORT/DATABASE"
CATALOG_ENGINES = {
    "sqlite": "sqlite", "redis": "redis", "rediss": "redis", "etcd": "etcd", "etcds": "etcd", "postgres": "postgres", "postgresql": "postgres",
}

# Annotations in which other programs keep what they did to an object.
KEPT_BY_OTHERS = ("kubectl.kubernetes.io/", "meta.helm.sh/")

NODE_KEYS = {"id", "port", "store", "domain", "spare", "disk"}
# What Ansible puts before every reason.
FAILED = "Task failed: "
LOGIN = re.compile(r"permission denied|authentication|host key", re.IGNORECASE)
BECOME = re.compile(r"sudo|become|privilege|password", re.IGNORECASE)
NAME = re.compile(r"[a-z0-9-]{1,63}\Z")
CODES = re.compile(r"\w+\([^)]*\)")
CODE = re.compile(r"\s*(?:rep\((\d+)\)|rs\((\d+),\s*(\d+)\))\s*\Z", re.IGNORECASE)


def address_of(host, variables):
    """Returns the address by which the machines of the cluster reach a host."""
    return variables.get("program_address") or variables.get("ansible_host") or host


def nodes(hosts, hostvars):
    """Returns the nodes on hosts, with all that the inventory leaves to defaults."""
    found = []
    for host in hosts:
        variables = hostvars[host]
        for index, entry in enumerate(variables.get("agent_nodes") or [{}]):
            unknown = set(entry) - NODE_KEYS
            if unknown:
                raise AnsibleFilterError(
                    "agent_nodes of %s: there is no key %s; there are %s" % (host, ", ".join(sorted(unknown)), ", ".join(sorted(NODE_KEYS)))
                )
            name = str(entry.get("id", host))
            port = int(entry.get("port", FIRST_PORT + index))
            directory = "/var/lib/restripe/" + name
            found.append(
                {
                    "host": host,
                    "id": name,
                    "port": port,
                    "address": "%s:%d" % (address_of(host, variables), port),
                    "domain": str(entry.get("domain", variables.get("agent_domain", ""))),
                    "spare": bool(entry.get("spare", False)),
                    "store": str(entry.get("store", "file:" + directory)),
                    "directory": directory if "store" not in entry else directory_of(str(entry["store"])),
                    "disk": str(entry.get("disk", "")),
                }
            )
    return found


def directory_of(store):
    """Returns the directory of a store; empty where it has none."""
    return store[len("file:"):] if store.startswith("file:") else ""


def disks(of_nodes):
    """Returns the disks of nodes, as the role store mounts them."""
    return [{key: node[key] for key in ("id", "disk", "directory")} for node in of_nodes if node["disk"]]


def domains(of_nodes):
    """Returns the failure domains of nodes in order, each node that has none as its own."""
    found = []
    for node in of_nodes:
        domain = node["domain"] or node["id"]
        if domain not in found:
            found.append(domain)
    return found


def batches(hosts, hostvars, most):
    """Returns hosts in the order in which they are taken away for a moment: those of one failure domain after the other, with at
    most so many nodes at once. A host is never divided."""
    by_domain = {}
    for host in hosts:
        own = nodes([host], hostvars)
        by_domain.setdefault(own[0]["domain"] or host, []).append((host, len(own)))
    found = []
    for domain, members in by_domain.items():
        batch = None
        for host, count in members:
            if batch is None or most < batch["nodes"] + count:
                batch = {"domain": domain, "hosts": [], "nodes": 0}
                found.append(batch)
            batch["hosts"].append(host)
            batch["nodes"] += count
    return found


def widths(text):
    """Returns how many nodes a code takes and how many of them may be lost; None where the text is no code."""
    match = CODE.match(text)
    if not match:
        return None
    if match.group(1):
        return int(match.group(1)), int(match.group(1)) - 1
    return int(match.group(2)) + int(match.group(3)), int(match.group(3))


def scheme_code(spec):
    """Returns the code of a RedundancyScheme."""
    if "replicas" in spec:
        return "rep(%s)" % spec["replicas"]
    return "rs(%s,%s)" % (spec.get("k", spec.get("dataChunks")), spec.get("m", spec.get("codingChunks")))


def at_once(status):
    """Returns how many nodes may be taken away for a moment, by what `restripe status` shows: as many as can be lost, and as leave
    enough for puts into every class; at least one."""
    steps = [widths(step) for one in status["classes"] for step in re.findall(CODES, one["ladder"])]
    up = [node for node in status["nodes"] if node["state"] == "up"]
    room = len(up) - max([width for width, may_lose in steps] or [0])
    return max(1, room if status["canLose"] < 0 else min(room, status["canLose"]))


def ladders(documents, classes):
    """Returns what has a ladder, by the words that name it: declared policies, and classes of a class file."""
    declared = [document for document in documents if document]
    codes = {one["metadata"]["name"]: scheme_code(one["spec"]) for one in declared if one.get("kind") == "RedundancyScheme"}
    found = {}
    for one in declared:
        if one.get("kind") == "RedundancyPolicy":
            found["policy " + one["metadata"]["name"]] = [codes.get(str(step), str(step)) for step in one["spec"].get("ladder", [])]
    for one in classes:
        found["class " + one["name"]] = re.findall(CODES, one["ladder"])
    return found


def mistake(where, what, cure):
    return "%s: %s; %s" % (where, what, cure)


def mistakes_in_names(all_nodes):
    found, owners, addresses = [], {}, {}
    for node in all_nodes:
        if not NAME.match(node["id"]):
            found.append(mistake(node["host"], "%r is no name of a node" % node["id"], "name it with 1 to 63 of a-z, 0-9 and -"))
        owners.setdefault(node["id"], []).append(node["host"])
        addresses.setdefault(node["address"], []).append(node["id"])
    for name, hosts in sorted(owners.items()):
        if len(hosts) > 1:
            found.append(mistake(", ".join(hosts), "the name %s is used %d times" % (name, len(hosts)), "give each node an id of its own in agent_nodes"))
    for address, names in sorted(addresses.items()):
        if len(names) > 1:
            found.append(mistake(address, "the nodes %s have one address" % ", ".join(names), "give each a port of its own in agent_nodes"))
    return found


def mistakes_in_domains(all_nodes, all_ladders):
    found = []
    by_host = {}
    for node in all_nodes:
        by_host.setdefault(node["host"], []).append(node)
    for host, own in sorted(by_host.items()):
        if len(own) > 1 and not any(node["domain"] for node in own):
            what = "its %d nodes have no failure domain, so each counts as one, and they are lost together" % len(own)
            found.append(mistake(host, what, "set agent_domain for every host, to its rack or to its own name"))
    without = [node["id"] for node in all_nodes if not node["domain"]]
    if without and len(without) < len(all_nodes):
        found.append(
            mistake(", ".join(without), "no failure domain, and other nodes have one", "set agent_domain for every host, or for none")
        )
    regular = [node for node in all_nodes if not node["spare"]]
    count = len(domains(regular))
    for where, steps in sorted(all_ladders.items()):
        for step in steps:
            code = widths(step)
            if code is None:
                found.append(mistake(where, "%r is no code" % step, "write rep(N) or rs(K,M), or declare a RedundancyScheme of that name"))
                continue
            width, may_lose = code
            if width > len(regular):
                what = "%s takes %d nodes, and the inventory has %d that are not spare" % (step, width, len(regular))
                found.append(mistake(where, what, "add nodes, or take a narrower code"))
            elif count and -(-width // count) > may_lose > 0:
                together = (step, -(-width // count), count, may_lose)
                what = "%s puts %d blocks of a stripe into one of %d failure domains, and survives the loss of %d" % together
                found.append(mistake(where, what, "spread the nodes over more domains, or take a code with more parities"))
    return found


def clock_ahead(info, after):
    """Returns how many seconds a clock is ahead of the controller's at least: it was read between two looks at that one."""
    return max(0, info["clock"] - float(after)) or min(0, info["clock"] - info["before"])


def mistake_of_unseen(host, info):
    """Returns why a host could not be looked at, by how the look at it ended."""
    said = " ".join((str(info.get("msg", "")) + " " + str(info.get("module_stderr", ""))).split())
    said = said[len(FAILED):] if said.startswith(FAILED) else said
    if info.get("unreachable"):
        if LOGIN.search(said):
            return mistake(host, "it lets nobody in: %s" % said, "set ansible_user, ansible_ssh_private_key_file and known_hosts so that `ssh` alone gets in")
        return mistake(host, "it does not answer: %s" % said, "start it, correct ansible_host, or take it out of the inventory")
    if BECOME.search(said):
        cure = "type --ask-become-pass, or let ansible_user become root without a password, in /etc/sudoers.d"
        return mistake(host, "one can log in, and not become root: %s" % said, cure)
    return mistake(host, "it cannot be looked at: %s" % said, "install python3 there; `ansible -m ping` tries it")


def mistakes_in_packages(host, info, packages):
    """Returns what is wrong with the packages on the controller that a host is to get."""
    found = []
    for package in packages:
        if package["problem"]:
            where = package["path"] or "program_packages of %s" % host
            found.append(mistake(where, package["problem"], "make it with `make package`, or name another in program_packages"))
        elif package["architecture"] not in ("all", info["architecture"]):
            what = "the package is for %s, and the machine is %s" % (package["architecture"], info["architecture"])
            found.append(mistake("%s: %s" % (host, package["path"]), what, "name one for %s in program_packages of this host" % info["architecture"]))
    return found


def mistakes_of_host(host, info, seen, limits):
    if "systemd" not in info:
        return [mistake_of_unseen(host, info)]
    found = []
    if info["systemd"] < limits["systemd"]:
        found.append(mistake(host, "systemd %s" % (info["systemd"] or "does not run"), "install Debian 12 or newer; at least systemd %d is needed" % limits["systemd"]))
    ahead = clock_ahead(info, seen.get("after", 0))
    if abs(ahead) > limits["clock_seconds"]:
        what = "its clock is %.0f s %s that of the controller" % (abs(ahead), "ahead of" if ahead > 0 else "behind")
        found.append(mistake(host, what, "install chrony or systemd-timesyncd, and let it set the clock"))
    for label in info["missing_labels"]:
        found.append(mistake(host, "no disk is labelled %s" % label, "label it with `e2label DEVICE %s`, or name another in agent_nodes" % label))
    for path, free in sorted(info["free_bytes"].items()):
        if free < limits["free_bytes"]:
            found.append(mistake(host, "%s has %d MiB left" % (path, free >> 20), "make room for %d MiB, name another directory, or set preflight_free_gib to less" % (limits["free_bytes"] >> 20)))
    for port, names in sorted(info["listeners"].items()):
        own = seen.get("servers", {}).get(port, "restripe")
        others = [name for name in names if not name.startswith(own)]
        if others:
            found.append(mistake(host, "%s listens on port %s" % (", ".join(sorted(others)).replace("?", "something"), port), "stop it, or give %s another port" % own.replace("restripe", "Restripe")))
    if info["version"] != seen.get("version", ""):
        found += mistakes_in_packages(host, info, seen.get("packages", []))
    return found


def mistakes_in_versions(hosts):
    by_version = {}
    for host, info in hosts.items():
        if info.get("version"):
            by_version.setdefault(info["version"], []).append(host)
    if len(by_version) < 2:
        return []
    words = ", ".join("%s on %s" % (version, " ".join(sorted(names))) for version, names in sorted(by_version.items()))
    return [mistake("versions", words, "run the playbook upgrade, which brings all to one")]


def mistakes_in_authority(info, now):
    """Returns what is wrong with the authority that certificates are issued by, of which restripe_authority_info told."""
    if info.get("problem"):
        return [mistake(info["path"], info["problem"], "put the copy of the authority back, or name the directory of another in pki_authority")]
    if "expires" not in info or float(info["expires"]) > float(now):
        return []
    at = datetime.datetime.fromtimestamp(float(info["expires"]), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    cure = "name a directory that is not there yet in pki_authority, where site makes a new one that issues every certificate anew"
    return [mistake(info["path"], "the authority has expired at %s, so that nobody whom it certified is believed" % at, cure)]


def mistakes(all_nodes, hosts, seen, documents, classes, limits, groups, hostvars, authority=None):
    """Returns every mistake in an inventory, and on the machines that it names: where, what, and the cure.

    hosts has what restripe_host_info told of each host, or how it failed. seen has by host what the controller knows of it: when
    the answer was there (after), the version that it is to have, the packages on the controller that it gets for that, and
    which program may listen on a port besides Restripe (servers). authority has what restripe_authority_info told, with the time then."""
    found = mistakes_in_names(all_nodes) + mistakes_in_domains(all_nodes, ladders(documents, classes)) + mistakes_in_catalog(groups, hostvars)
    found += mistakes_in_authority(authority["info"], authority["now"]) if authority else []
    for host in sorted(hosts):
        found += mistakes_of_host(host, hosts[host], seen.get(host, {}), limits)
    # A package that cannot be read is one mistake, however many machines are to get it.
    return list(dict.fromkeys(found)) + mistakes_in_versions(hosts)


def etcd_members(hosts, hostvars):
    """Returns the members of the etcd that runs on hosts: the host, its address and port for gateways, what its fellows reach it by (peer),
    and how a new cluster is told of it (bootstrap)."""
    found = []
    for host in hosts:
        variables = hostvars[host]
        address = address_of(host, variables)
        peer = "https://%s:%d" % (address, int(variables.get("etcd_peer_port", ETCD_PEER_PORT)))
        port = int(variables.get("etcd_port", ETCD_PORT))
        found.append({"host": host, "address": address, "port": port, "peer": peer, "bootstrap": "%s=%s" % (host, peer)})
    return found


def catalog(host, groups, hostvars):
    """Returns the address of the catalog of the gateway on a host, without the password of gateway_catalog_password."""
    variables = hostvars[host]
    address = str(variables.get("gateway_catalog") or "")
    members = etcd_members(groups.get("restripe_etcd", []), hostvars)
    if not address and members:
        files = "/etc/restripe/tls/gateway-" + gateway_id(host, variables)
        hosts = ",".join("%s:%d" % (member["address"], member["port"]) for member in members)
        address = "etcds://%s?cacert=%s/ca.crt&cert=%s/tls.crt&key=%s/tls.key" % (hosts, files, files, files)
    address = address or CATALOG_FILE
    name = str(variables.get("gateway_catalog_name") or "")
    if name and engine_of(address) != "sqlite":
        address += ("&" if "?" in address else "?") + "catalog=" + quote(name, safe="")
    return address


def catalog_with(address, password):
    """Returns the address of a catalog with the password of the user that it names; Redis has passwords of nobody, too."""
    if not password:
        return address
    if engine_of(address) == "redis" and "@" not in address:
        return address.replace("://", "://:%s@" % quote(password, safe=""), 1)
    return re.sub(r"\A([a-z]+://[^/?#@:]+)@", lambda match: "%s:%s@" % (match.group(1), quote(password, safe="")), address)


def engine_of(address):
    """Returns the engine that an address of a catalog names; empty where it names none."""
    scheme, colon, _ = address.partition(":")
    return CATALOG_ENGINES.get(scheme, "") if colon else ""


def catalog_place(address):
    """Returns where a catalog is: its engine, hosts, database and name, without who asks and how."""
    engine = engine_of(address)
    if not engine:
        return engine, frozenset([address]), "", ""
    if engine == "sqlite":
        return engine, frozenset([address.split(":", 1)[1]]), "", ""
    hosts, tail = re.match(r"[a-z]+:(?://)?(?:[^/?#]*@)?([^/?#]*)([^#]*)", address).groups()
    parts = urlsplit("any://host" + tail)
    return engine, frozenset(hosts.split(",")), parts.path.strip("/"), parse_qs(parts.query).get("catalog", ["restripe"])[-1]


def same_catalog(one, other):
    """Returns whether two addresses are of one catalog: some of the hosts are the same, and all else but who asks and how."""
    one, other = catalog_place(one), catalog_place(other)
    return one[0] == other[0] and one[2:] == other[2:] and bool(one[1] & other[1])


def wrong_address(address):
    """Returns what is wrong with the address of a catalog; None where nothing is."""
    engine = engine_of(address)
    if not engine:
        return "it names no engine of a catalog"
    if engine == "sqlite":
        return None if address.startswith("sqlite:/") else "the path of the file does not begin with /"
    if "://" not in address:
        return "it has no //"
    _, hosts, database, _ = catalog_place(address)
    for host in sorted(hosts):
        if not re.match(r"([\w.-]+|\[[0-9a-fA-F:.%]+\])(:\d+)?\Z", host) or (engine == "etcd" and not re.search(r":\d+\Z", host)):
            return "%r is not HOST:PORT" % host
    if engine == "postgres" and not database:
        return "it names no database"
    return None


def shown_address(address):
    """Returns the address of a catalog without a password in it, and of its parameters only the catalog's name."""
    base, _, query = re.sub(r"://([^/?#@:]*):[^/?#]*@", r"://\1@", address).partition("?")
    names = parse_qs(query).get("catalog")
    return base + ("?catalog=" + quote(names[-1], safe="") if names else "")


def mistakes_in_catalog(groups, hostvars):
    """Returns what is wrong with what the inventory says of the catalog."""
    found = []
    gateways = groups.get("restripe_gateways", [])
    members = groups.get("restripe_etcd")
    if members is not None and not members:
        found.append(mistake("restripe_etcd", "no machine is in this group", "put three or five there, or take it out of the inventory"))
    elif members and len(members) % 2 == 0:
        what = "%d members of etcd survive the loss of no more than %d would" % (len(members), len(members) - 1)
        found.append(mistake("restripe_etcd", what, "put three or five machines there"))
    by_address = {}
    for host in gateways:
        address = catalog(host, groups, hostvars)
        wrong = wrong_address(address)
        if wrong:
            found.append(mistake("gateway_catalog of %s: %s" % (host, shown_address(address)), wrong, "write " + CATALOG_FORMS))
        by_address.setdefault(catalog_place(address), []).append(host)
        password = hostvars[host].get("gateway_catalog_password")
        if password and catalog_with(address, str(password)) == address:
            what = "gateway_catalog names no user whose password this could be"
            found.append(mistake("gateway_catalog_password of %s" % host, what, "write USER@ before the first host of gateway_catalog"))
    if len(by_address) > 1:
        words = ", ".join("%s of %s" % (shown_address(catalog(hosts[0], groups, hostvars)), " ".join(hosts)) for hosts in by_address.values())
        found.append(mistake("gateway_catalog", "gateways of one cluster have several catalogs: %s" % words, "set it for all of them together"))
    elif len(gateways) > 1 and engine_of(catalog(gateways[0], groups, hostvars)) == "sqlite":
        what = "a file is the catalog of one gateway, and the inventory has %d" % len(gateways)
        cure = "put three machines into the group restripe_etcd, or name a Redis, etcd or PostgreSQL in gateway_catalog"
        found.append(mistake(", ".join(gateways), what, cure))
    return list(dict.fromkeys(found))


def gateway_id(host, variables):
    return str(variables.get("gateway_id", host))


def gateway_port(variables):
    return int(variables.get("gateway_port", GATEWAY_PORT))


def gateway_urls(hosts, hostvars):
    """Returns the address of the gateway on each host."""
    return ["https://%s:%d" % (address_of(host, hostvars[host]), gateway_port(hostvars[host])) for host in hosts]


def certificates(host, groups, hostvars, without=""):
    """Returns the certificates that a host needs for what it runs: role, name, and the names of the host for other programs.
    A node that is left out gets none."""
    found = []
    reached = {address_of(host, hostvars[host]), host, "localhost", "127.0.0.1"}
    if host in groups.get("restripe_agents", []):
        found += [{"role": "agent", "name": node["id"], "hosts": []} for node in nodes([host], hostvars) if node["id"] != without]
    if host in groups.get("restripe_gateways", []):
        names = reached | ({CATALOG_HOST} if groups.get("restripe_etcd") else set())
        found.append({"role": "gateway", "name": gateway_id(host, hostvars[host]), "hosts": sorted(names)})
        found.append({"role": "admin", "name": host, "hosts": []})
    if host in groups.get("restripe_etcd", []):
        found.append({"role": "catalog", "name": host, "hosts": sorted(reached | {CATALOG_HOST})})
    for role in ("operator", "console"):
        if host in groups.get("restripe_%ss" % role, []):
            found.append({"role": role, "name": host, "hosts": sorted(reached)})
    return found


def declared_nodes(of_nodes):
    """Returns nodes as a StorageBackend declares them."""
    found = []
    for node in of_nodes:
        declared = {"name": node["id"]}
        if node["domain"]:
            declared["failureDomain"] = node["domain"]
        if node["spare"]:
            declared["spare"] = True
        found.append(declared)
    return found


def node_entries(of_nodes):
    """Returns nodes as the node file of a gateway has them."""
    found = []
    for node in of_nodes:
        entry = {"id": node["id"], "address": node["address"]}
        if node["domain"]:
            entry["domain"] = node["domain"]
        if node["spare"]:
            entry["spare"] = True
        found.append(entry)
    return found


def declarations(lists):
    """Returns what `restripe get -o json` shows of several kinds as documents to be applied again: without what the server adds."""
    documents = []
    for text in lists:
        shown = json.loads(text)
        for one in shown.get("items", [shown]) if shown else []:
            metadata = {"name": one["metadata"]["name"]}
            for key in ("labels", "annotations"):
                kept = {name: value for name, value in (one["metadata"].get(key) or {}).items() if not name.startswith(KEPT_BY_OTHERS)}
                if kept:
                    metadata[key] = kept
            documents.append({"apiVersion": one["apiVersion"], "kind": one["kind"], "metadata": metadata, "spec": one["spec"]})
    return "".join("---\n" + yaml.safe_dump(document, sort_keys=False) for document in documents)


class FilterModule(object):
    def filters(self):
        return {
            "at_once": at_once,
            "batches": batches,
            "catalog": catalog,
            "catalog_with": catalog_with,
            "certificates": certificates,
            "declarations": declarations,
            "declared_nodes": declared_nodes,
            "disks": disks,
            "engine_of": engine_of,
            "etcd_members": etcd_members,
            "gateway_urls": gateway_urls,
            "mistakes": mistakes,
            "node_entries": node_entries,
            "nodes": nodes,
            "same_catalog": same_catalog,
            "shown_address": shown_address,
        }

#!/usr/bin/python
"""Declares what a node of a cluster is to be."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: restripe_node
short_description: What is declared of a node of a cluster
description:
  - Says to a gateway whether a node takes blocks, is emptied, is replaced, or is no member any more. It does not wait until
    what lies on the node has moved; M(restripe.storage.restripe_cluster_info) tells how far that is.
extends_documentation_fragment: [restripe.storage.gateway]
options:
  name:
    description: The node.
    type: str
    required: true
  state:
    description:
      - V(up) takes blocks. V(draining) serves, takes none, and what lies on it moves elsewhere. V(down) is not expected back,
        what lies on it is rebuilt elsewhere.
      - V(replaced) comes back at another O(address), or has O(replacement) take its place.
      - V(removed) is no member any more, which is refused while anything lies on it.
    type: str
    choices: [up, draining, down, replaced, removed]
    required: true
  replacement:
    description: The node that takes the place of one that is V(replaced). Without it the node itself comes back.
    type: str
  address:
    description: Where the agent of the replacement listens, V(HOST:PORT).
    type: str
  domain:
    description: Failure domain of the replacement. Without it, that of the node.
    type: str
  rate:
    description: Limit on what a drain reads, sends and writes, such as V(50MiB/s), or V(unlimited).
    type: str
attributes:
  check_mode:
    description: Says what would be declared, and declares nothing.
    support: full
  diff_mode:
    description: Shows what is declared of the node.
    support: full
author: [Restripe]
"""

EXAMPLES = r"""
- name: Empty a node, slowly
  restripe.storage.restripe_node:
    gateway: https://10.0.0.1:7480
    tls: /etc/restripe/tls/admin-g1
    name: n3
    state: draining
    rate: 50MiB/s
"""

RETURN = r"""
node:
  description: The node as C(restripe node list -o json) shows it. Absent where it is no member.
  type: dict
  returned: success
"""

import re

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.restripe.storage.plugins.module_utils.program import GATEWAY_ARGUMENTS, Program, Refused


RATE = re.compile(r"([0-9.]+)\s*([kmgtpe]?)(i?)b?(?:/s)?\Z", re.IGNORECASE)


def bytes_per_second(rate):
    """Returns a rate as the program reads it, 0 for none; None where it is the program's to say what is wrong with it."""
    if rate in ("", "unlimited"):
        return 0
    match = RATE.match(rate.strip())
    if not match or match.group(1).count(".") > 1 or match.group(1) == ".":
        return None
    unit = (1024 if match.group(3) else 1000) ** "_kmgtpe".index(match.group(2).lower() or "_")
    return int(float(match.group(1)) * unit)


def members(program):
    return {node["id"]: node for node in program.read("node", "list")}


def command_for(parameters, nodes):
    """Returns the command that makes the node what it is to be; none where it is that."""
    name, state = parameters["name"], parameters["state"]
    node = nodes.get(name)
    if state == "removed":
        return ["node", "remove", name] if node else []
    if state == "replaced":
        return replacement_for(parameters, nodes)
    if not node:
        raise Refused("there is no node %s: the members are %s" % (name, " ".join(sorted(nodes)) or "none"))
    if state == "draining":
        rate = parameters["rate"]
        if node["declared"] == "draining" and (not rate or bytes_per_second(rate) == (node.get("drain") or {}).get("bytesPerSecond")):
            return []
        return ["node", "drain", name] + (["--rate", rate] if rate else [])
    if node["declared"] == state and not (state == "up" and node["state"] == "out"):
        return []
    if state == "up" and node["declared"] == "draining":
        return ["node", "undrain", name]
    return ["node", state, name]


def replacement_for(parameters, nodes):
    name, replacement, address = parameters["name"], parameters["replacement"], parameters["address"]
    if replacement and replacement in nodes and (name not in nodes or nodes[replacement].get("replaces") == name):
        return []
    if name not in nodes:
        raise Refused("there is no node %s to be replaced: the members are %s" % (name, " ".join(sorted(nodes)) or "none"))
    if not replacement and nodes[name]["address"] == address:
        return []
    command = ["node", "replace", name]
    for flag, value in (("--with", replacement), ("--address", address), ("--domain", parameters["domain"])):
        if value:
            command += [flag, value]
    return command


def shown(node):
    """Returns what --diff shows of a node."""
    if not node:
        return "no member\n"
    text = "declared: %s\naddress: %s\n" % (node["declared"], node["address"])
    if node.get("drain"):
        text += "bytes per second: %s\n" % (node["drain"]["bytesPerSecond"] or "unlimited")
    return text


def main():
    module = AnsibleModule(
        argument_spec=dict(
            GATEWAY_ARGUMENTS,
            name={"type": "str", "required": True},
            state={"type": "str", "required": True, "choices": ["up", "draining", "down", "replaced", "removed"]},
            replacement={"type": "str"},
            address={"type": "str"},
            domain={"type": "str"},
            rate={"type": "str"},
        ),
        required_if=[("state", "replaced", ["address"])],
        supports_check_mode=True,
    )
    name = module.params["name"]
    try:
        program = Program(module)
        nodes = members(program)
        before = shown(nodes.get(name))
        command = command_for(module.params, nodes)
        if not command:
            module.exit_json(changed=False, node=nodes.get(name), diff={"before": before, "after": before})
        if module.check_mode:
            module.exit_json(changed=True, node=nodes.get(name), diff={"before": before, "after": "restripe %s\n" % " ".join(command)})
        program.run(*command)
        node = members(program).get(name)
        module.exit_json(changed=True, node=node, diff={"before": before, "after": shown(node)})
    except Refused as refused:
        module.fail_json(msg=str(refused))


if __name__ == "__main__":
    main()

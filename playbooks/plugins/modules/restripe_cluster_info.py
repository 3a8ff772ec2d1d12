#!/usr/bin/python
"""Asks a gateway how the cluster is."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: restripe_cluster_info
short_description: How a cluster is, and whether it is safe to take nodes away from it
description:
  - Asks a gateway for C(restripe status), C(restripe node list) and C(restripe doctor).
  - A gateway that does not answer is no error but a reason why the cluster is not ready, so that a task can wait with
    C(until) and C(retries).
extends_documentation_fragment: [restripe.storage.gateway]
options:
  can_lose:
    description: So many nodes every object has to survive the loss of for the cluster to be ready.
    type: int
    default: 0
  nodes:
    description: Nodes that have to be members, and up, for the cluster to be ready.
    type: list
    elements: str
    default: []
  leaving:
    description: Nodes that may be in any state, as they are being replaced or removed.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: Changes nothing in either mode.
    support: full
author: [Restripe]
"""

EXAMPLES = r"""
- name: Wait until two more nodes may be lost
  restripe.storage.restripe_cluster_info:
    gateway: https://10.0.0.1:7480
    tls: /etc/restripe/tls/admin-g1
    can_lose: 2
  register: cluster
  until: cluster.ready
  retries: 60
  delay: 10
"""

RETURN = r"""
ready:
  description: Whether every group is whole, every object survives the loss of O(can_lose) nodes, and no node is missing.
  type: bool
  returned: always
reasons:
  description: Why the cluster is not ready, in words.
  type: list
  elements: str
  returned: always
msg:
  description: The same in one text.
  type: str
  returned: always
summary:
  description: What C(restripe status) and C(restripe doctor) say to people, by lines.
  type: list
  elements: str
  returned: when the gateway answers
status:
  description: What C(restripe status -o json) shows.
  type: dict
  returned: when the gateway answers
nodes:
  description: What C(restripe node list -o json) shows, by name.
  type: dict
  returned: when the gateway answers
findings:
  description: What C(restripe doctor -o json) shows.
  type: list
  elements: dict
  returned: when the gateway answers
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.restripe.storage.plugins.module_utils.program import GATEWAY_ARGUMENTS, Program, Refused


def reasons_against(parameters, status, nodes, findings):
    """Returns why no node may be taken away from the cluster now, in words."""
    reasons = []
    if status["notWhole"] > 0:
        reasons.append("%d groups are not whole: wait for their repair, which `restripe repair status` shows" % status["notWhole"])
    if 0 <= status["canLose"] < parameters["can_lose"]:
        reasons.append("some objects survive the loss of %d nodes, and %d is wanted" % (status["canLose"], parameters["can_lose"]))
    if status.get("catalogBehind"):
        reasons.append(status["catalogBehind"])
    for name in parameters["nodes"]:
        if name not in nodes:
            reasons.append("node %s is no member yet" % name)
    for name, node in sorted(nodes.items()):
        if name in parameters["leaving"]:
            continue
        if node["state"] != "up" and not (node["state"] == "draining" and name not in parameters["nodes"]):
            reasons.append("node %s is %s" % (name, node["state"]))
        elif node.get("fenced"):
            reasons.append("node %s waits for a sweep of its store" % name)
    for finding in findings:
        if finding["severity"] == "error" and finding["subject"] not in ["node " + name for name in parameters["leaving"]]:
            reasons.append("%s: %s; %s" % (finding["subject"], finding["text"], finding.get("cure", "")))
    return reasons


def main():
    module = AnsibleModule(
        argument_spec=dict(
            GATEWAY_ARGUMENTS,
            can_lose={"type": "int", "default": 0},
            nodes={"type": "list", "elements": "str", "default": []},
            leaving={"type": "list", "elements": "str", "default": []},
        ),
        supports_check_mode=True,
    )
    program = Program(module)
    try:
        status = program.read("status")
        nodes = {node["id"]: node for node in program.read("node", "list")}
        findings = program.read("doctor", codes=(0, 1)) or []
        summary = (program.run("status") + "\n" + program.run("doctor", codes=(0, 1))).splitlines()
    except (Refused, ValueError) as refused:
        module.exit_json(changed=False, ready=False, reasons=[str(refused)], msg=str(refused))
    reasons = reasons_against(module.params, status, nodes, findings)
    module.exit_json(
        changed=False,
        ready=not reasons,
        reasons=reasons,
        msg="; ".join(reasons) or "the cluster is whole",
        summary=summary,
        status=status,
        nodes=nodes,
        findings=findings,
    )


if __name__ == "__main__":
    main()

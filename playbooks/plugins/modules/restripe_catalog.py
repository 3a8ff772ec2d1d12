#!/usr/bin/python
"""Backs a catalog up, makes one of a backup, and moves one to another engine."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: restripe_catalog
short_description: Backups of a catalog, and moves of it to another engine
description:
  - Runs C(restripe catalog backup), C(restripe catalog restore) or C(restripe catalog copy), which say when what they were asked for
    is done already, and go on where they were broken off.
  - An address with a password is in a file, and named as V(@FILE).
options:
  action:
    description: >-
      V(backup) copies the catalog of the gateway to O(file); V(restore) makes the empty catalog O(to) of O(file); V(move) moves O(catalog)
      to the empty catalog O(to).
    type: str
    choices: [backup, restore, move]
    required: true
  file:
    description: The backup. One that is made takes the place of one that is there.
    type: path
  catalog:
    description: Address of the catalog that is moved, or V(@FILE) with it.
    type: str
  to:
    description: Address of the catalog that is made, or V(@FILE) with it.
    type: str
  gateway:
    description: Address of a gateway of the catalog.
    type: str
  tls:
    description: Directory with a certificate of the cluster, of the role V(admin), by which the gateway knows who asks.
    type: path
  user:
    description: As whom to run the program, who owns the files of catalogs.
    type: str
    default: restripe
  program:
    description: The program C(restripe).
    type: path
    default: restripe
attributes:
  check_mode:
    description: Says that it would be done, and does nothing. A catalog that was moved before counts as one that is not.
    support: full
author: [Restripe]
"""

EXAMPLES = r"""
- name: Back the catalog up
  restripe.storage.restripe_catalog:
    action: backup
    file: /var/lib/restripe/backup.db
    gateway: https://10.0.0.1:7480
    tls: /etc/restripe/tls/admin-g1

- name: Move the catalog
  restripe.storage.restripe_catalog:
    action: move
    catalog: sqlite:/var/lib/restripe/catalog.db
    to: "@/etc/restripe/gateway.catalog.next"
    gateway: https://10.0.0.1:7480
    tls: /etc/restripe/tls/admin-g1
"""

RETURN = r"""
copied:
  description: What the program says of the copy, such as how many C(records) and C(bytes) it has.
  type: dict
  returned: when it was made
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.restripe.storage.plugins.module_utils.program import Program, Refused


def command_for(parameters):
    """Returns the arguments of the program."""
    if parameters["action"] == "backup":
        return ["catalog", "backup", parameters["file"]]
    if parameters["action"] == "restore":
        return ["catalog", "restore", parameters["file"], "--to", parameters["to"]]
    return ["catalog", "copy", "--catalog", parameters["catalog"], "--to", parameters["to"]]


def main():
    module = AnsibleModule(
        argument_spec={
            "action": {"type": "str", "required": True, "choices": ["backup", "restore", "move"]},
            "file": {"type": "path"},
            "catalog": {"type": "str"},
            "to": {"type": "str"},
            "gateway": {"type": "str"},
            "tls": {"type": "path"},
            "user": {"type": "str", "default": "restripe"},
            "program": {"type": "path", "default": "restripe"},
        },
        required_if=[("action", "backup", ["file", "gateway"]), ("action", "restore", ["file", "to"]), ("action", "move", ["catalog", "to", "gateway"])],
        supports_check_mode=True,
    )
    if module.check_mode:
        module.exit_json(changed=True)
    try:
        copied = Program(module).read(*command_for(module.params))
    except Refused as refused:
        module.fail_json(msg=str(refused))
    module.exit_json(changed=not copied.get("already", False), copied=copied)


if __name__ == "__main__":
    main()

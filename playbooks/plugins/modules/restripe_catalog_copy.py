#!/usr/bin/python
"""Copies a catalog in SQLite while its gateway works."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: restripe_catalog_copy
short_description: A copy of a catalog in SQLite, as it was at one moment
description:
  - Copies the database with the means of SQLite and checks the copy, which is a catalog like the first, and no backup as
    M(restripe.storage.restripe_catalog) makes them. The file appears whole or not at all.
options:
  source:
    description: The database of the catalog.
    type: path
    required: true
  destination:
    description: The file that the copy becomes. One that is there is replaced.
    type: path
    required: true
attributes:
  check_mode:
    description: Says that a copy would be made.
    support: full
author: [Restripe]
"""

EXAMPLES = r"""
- name: Copy the catalog
  restripe.storage.restripe_catalog_copy:
    source: /var/lib/restripe/catalog.db
    destination: /var/lib/restripe/backup/catalog.db
"""

RETURN = r"""
bytes:
  description: Size of the copy.
  type: int
  returned: when a copy was made
"""

import os
import sqlite3

from ansible.module_utils.basic import AnsibleModule


def copy(source, destination):
    """Copies the database, and returns what SQLite found wrong with the copy."""
    origin = sqlite3.connect("file:%s?mode=ro" % source, uri=True, timeout=60)
    target = sqlite3.connect(destination)
    try:
        origin.backup(target)
        target.execute("PRAGMA journal_mode=DELETE")
        return [row[0] for row in target.execute("PRAGMA integrity_check") if row[0] != "ok"]
    finally:
        target.close()
        origin.close()


def main():
    module = AnsibleModule(
        argument_spec={"source": {"type": "path", "required": True}, "destination": {"type": "path", "required": True}},
        supports_check_mode=True,
    )
    source, destination = module.params["source"], module.params["destination"]
    if not os.path.exists(source):
        module.fail_json(msg="there is no catalog %s: name the file that the gateway's catalog is in" % source)
    if module.check_mode:
        module.exit_json(changed=True)
    staged = destination + ".staged"
    os.umask(0o077)
    try:
        if os.path.exists(staged):
            os.remove(staged)
        wrong = copy(source, staged)
    except sqlite3.Error as failed:
        module.fail_json(msg="copying %s to %s: %s" % (source, destination, failed))
    if wrong:
        module.fail_json(msg="the copy of %s is damaged: %s; the catalog itself may be, too: look at it before you need it" % (source, "; ".join(wrong)))
    os.rename(staged, destination)
    module.exit_json(changed=True, bytes=os.stat(destination).st_size)


if __name__ == "__main__":
    main()

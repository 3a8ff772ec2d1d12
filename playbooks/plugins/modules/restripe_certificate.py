#!/usr/bin/python
"""Has the authority of a cluster issue, renew and revoke certificates."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: restripe_certificate
short_description: Certificates of an authority that C(restripe pki init) made
description:
  - Runs where the authority is. It issues a certificate that is missing, renews one that expires soon or names other hosts
    than it should, and returns the files, which M(ansible.builtin.copy) brings to the machine that they are for.
  - The files hold the key. Give the task C(no_log).
options:
  authority:
    description: Directory of the authority. It is made where it is missing and O(cluster) is given.
    type: path
    required: true
  cluster:
    description: Name of the cluster that a new authority is for. An authority of another cluster is an error.
    type: str
    required: true
  role:
    description: What the certificate is for.
    type: str
    choices: [agent, gateway, console, operator, admin, catalog]
    required: true
  name:
    description: Whom it is for; of an agent the name of its node.
    type: str
    required: true
  hosts:
    description: Names and addresses under which browsers and other programs reach it.
    type: list
    elements: str
    default: []
  days:
    description: For how long a certificate is valid.
    type: int
    default: 90
  renew_within_days:
    description: One that expires within so many days is renewed. At least O(days) renews always.
    type: int
    default: 30
  state:
    description: V(revoked) revokes every certificate of the role and name, and forgets the one that was kept.
    type: str
    choices: [present, revoked]
    default: present
  program:
    description: The program C(restripe).
    type: path
    default: restripe
attributes:
  check_mode:
    description: Says what would be issued, renewed or revoked, and does none of it.
    support: full
  diff_mode:
    description: Shows when the certificate expires, and whom it names.
    support: full
author: [Restripe]
"""

EXAMPLES = r"""
- name: Issue the certificate of a node
  restripe.storage.restripe_certificate:
    authority: /root/blue-ca
    cluster: blue
    role: agent
    name: n1
  delegate_to: localhost
  no_log: true
  register: certificate
"""

RETURN = r"""
directory:
  description: Name of the directory that it has on the machine that it is for, C(ROLE-NAME).
  type: str
  returned: success
files:
  description: Content of each file by its name. Absent where check mode would have it issued.
  type: dict
  returned: when the certificate is there
expires:
  description: When the certificate expires.
  type: str
  returned: when the certificate is there
"""

import datetime
import fcntl
import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.restripe.storage.plugins.module_utils.program import Program, Refused

FILES = ("tls.crt", "tls.key", "ca.crt", "ca.crl")


def parse(text):
    """Returns an instant that the program printed, in UTC."""
    return datetime.datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")


class Authority:
    """An authority, and the certificates that it has issued, each kept in a directory of its own."""

    def __init__(self, module):
        self.module = module
        self.program = Program(module)
        self.path = module.params["authority"]
        self.who = (module.params["role"], module.params["name"])
        self.directory = "%s-%s" % self.who
        self.kept = os.path.join(self.path, "issued", self.directory)

    def exists(self):
        return os.path.exists(os.path.join(self.path, "ca.crt"))

    def make(self):
        self.program.run("pki", "init", self.module.params["cluster"], "--ca", self.path)

    def issued(self):
        """Returns the certificates of this role and name that have neither expired nor been revoked, the latest last."""
        if not self.exists():
            return []
        issued = self.program.read("pki", "list", "--ca", self.path)
        mine = [one for one in issued if (one["identity"]["role"], one["identity"]["name"]) == self.who and not one.get("revoked")]
        for one in mine:
            if one["identity"]["cluster"] != self.module.params["cluster"]:
                raise Refused(
                    "the authority in %s is of cluster %s, and %s is wanted: name the directory of another authority"
                    % (self.path, one["identity"]["cluster"], self.module.params["cluster"])
                )
        return sorted(mine, key=lambda one: one["expires"])

    def files(self):
        """Returns the content of the kept files by name."""
        found = {}
        for name in FILES:
            # What is revoked changes without anything being issued.
            path = os.path.join(self.path if name.startswith("ca.") else self.kept, name)
            if os.path.exists(path):
                with open(path) as file:
                    found[name] = file.read()
        return found


def shown(one):
    """Returns what --diff shows of a certificate."""
    if not one:
        return ""
    return "expires: %s\nhosts: %s\n" % (one["expires"], " ".join(sorted(one.get("hosts") or [])))


def ensure_revoked(module, authority):
    issued = authority.issued()
    before = "".join(shown(one) for one in issued)
    if issued and not module.check_mode:
        authority.program.run("pki", "revoke", "%s/%s" % authority.who, "--ca", authority.path)
        for name in FILES:
            path = os.path.join(authority.kept, name)
            if os.path.exists(path):
                os.remove(path)
    module.exit_json(changed=bool(issued), directory=authority.directory, diff={"before": before, "after": ""})


def ensure_present(module, authority):
    issued = authority.issued()
    latest = issued[-1] if issued and os.path.exists(os.path.join(authority.kept, "tls.key")) else None
    soon = datetime.datetime.utcnow() + datetime.timedelta(days=module.params["renew_within_days"])
    wanted = sorted(module.params["hosts"])
    if latest and sorted(latest.get("hosts") or []) == wanted and parse(latest["expires"]) > soon:
        module.exit_json(
            changed=False,
            directory=authority.directory,
            expires=latest["expires"],
            files=authority.files(),
            diff={"before": shown(latest), "after": shown(latest)},
        )
    if module.check_mode:
        after = "expires: in %d days\nhosts: %s\n" % (module.params["days"], " ".join(wanted))
        module.exit_json(changed=True, directory=authority.directory, diff={"before": shown(latest), "after": after})
    if not authority.exists():
        authority.make()
    arguments = ["pki", "issue", authority.who[0], authority.who[1], "--ca", authority.path, "--out", authority.kept]
    arguments += ["--life", "%dh" % (24 * module.params["days"])]
    for host in wanted:
        arguments += ["--host", host]
    authority.program.run(*arguments)
    issued = authority.issued()[-1]
    module.exit_json(
        changed=True,
        directory=authority.directory,
        expires=issued["expires"],
        files=authority.files(),
        diff={"before": shown(latest), "after": shown(issued)},
    )


def main():
    module = AnsibleModule(
        argument_spec={
            "authority": {"type": "path", "required": True},
            "cluster": {"type": "str", "required": True},
            "role": {"type": "str", "required": True, "choices": ["agent", "gateway", "console", "operator", "admin", "catalog"]},
            "name": {"type": "str", "required": True},
            "hosts": {"type": "list", "elements": "str", "default": []},
            "days": {"type": "int", "default": 90},
            "renew_within_days": {"type": "int", "default": 30},
            "state": {"type": "str", "choices": ["present", "revoked"], "default": "present"},
            "program": {"type": "path", "default": "restripe"},
        },
        supports_check_mode=True,
    )
    # One at a time, as the program refuses an authority that another one is changing.
    if not module.check_mode:
        path = module.params["authority"].rstrip("/")
        if not os.path.isdir(os.path.dirname(path) or "."):
            module.fail_json(msg="there is no directory %s for the authority: make it, or name another in pki_authority" % os.path.dirname(path))
        lock = open(path + ".lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        authority = Authority(module)
        if module.params["state"] == "revoked":
            ensure_revoked(module, authority)
        ensure_present(module, authority)
    except Refused as refused:
        module.fail_json(msg=str(refused))


if __name__ == "__main__":
    main()

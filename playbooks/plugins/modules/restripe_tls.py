#!/usr/bin/python
"""Puts certificates where the parts of a cluster look for them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: restripe_tls
short_description: Certificates on the machine that they are for
description:
  - Writes directories as C(--tls) names them. All files of a directory are written before the first of them takes its place,
    the key first, so that a program that looks meanwhile finds a pair that fits.
  - A list of what is revoked, C(ca.crl), that is there and not given, is taken away, as another authority made it.
  - Give the task C(no_log).
options:
  certificates:
    description: By name of a directory, such as V(agent-n1), the content of its files, as M(restripe.storage.restripe_certificate) returns them.
    type: dict
    required: true
  directory:
    description: Where the directories are.
    type: path
    default: /etc/restripe/tls
  group:
    description: The group that may read them, besides root.
    type: str
    default: restripe
attributes:
  check_mode:
    description: Says whether files would be written.
    support: full
  diff_mode:
    description: Names the files, and does not show them.
    support: partial
    details: Keys are secret.
author: [Restripe]
"""

EXAMPLES = r"""
- name: Bring the certificate of a node
  restripe.storage.restripe_tls:
    certificates: {agent-n1: "{{ certificate.files }}"}
  no_log: true
"""

RETURN = r"""
written:
  description: The files that were written, or would be.
  type: list
  elements: str
  returned: always
"""

import grp
import os

from ansible.module_utils.basic import AnsibleModule


def content_of(path):
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return file.read()


def place(path, mode, group):
    os.chown(path, 0, group)
    os.chmod(path, mode)


def write(directory, files, group):
    """Writes files into a directory: beside their places first."""
    if not os.path.isdir(directory):
        os.makedirs(directory, 0o750)
        place(directory, 0o750, group)
    for name, content in files.items():
        staged = os.path.join(directory, "." + name + ".staged")
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(content)
        place(staged, 0o640, group)
    for name in sorted(files, reverse=True):
        os.rename(os.path.join(directory, "." + name + ".staged"), os.path.join(directory, name))


def left_over(directory, files):
    """Returns the list of what is revoked where none is given: another authority has signed it, and nothing runs beside it."""
    return [os.path.join(directory, name) for name in ("ca.crl",) if name not in files and os.path.exists(os.path.join(directory, name))]


def main():
    module = AnsibleModule(
        argument_spec={
            "certificates": {"type": "dict", "required": True, "no_log": True},
            "directory": {"type": "path", "default": "/etc/restripe/tls"},
            "group": {"type": "str", "default": "restripe"},
        },
        supports_check_mode=True,
    )
    base = module.params["directory"]
    differing = {}
    for name, files in sorted(module.params["certificates"].items()):
        changed = {file: content for file, content in files.items() if content_of(os.path.join(base, name, file)) != content}
        if changed:
            differing[name] = changed
    removed = [path for name, files in sorted(module.params["certificates"].items()) for path in left_over(os.path.join(base, name), files)]
    written = [os.path.join(base, name, file) for name in differing for file in sorted(differing[name])]
    if differing and not module.check_mode:
        try:
            group = grp.getgrnam(module.params["group"]).gr_gid
        except KeyError:
            module.fail_json(msg="there is no group %s here: install the package restripe-agent, which makes it" % module.params["group"])
        for name, files in differing.items():
            write(os.path.join(base, name), files, group)
    # After the others: what is revoked by the former authority is refused by what has read the new one, which then takes neither.
    for path in removed:
        if not module.check_mode:
            os.remove(path)
    shown = ["".join(path + "\n" for path in paths) for paths in (removed, written)]
    module.exit_json(changed=bool(differing or removed), written=written, diff={"before": shown[0], "after": shown[1]})


if __name__ == "__main__":
    main()

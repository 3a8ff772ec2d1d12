#!/usr/bin/python
"""Tells which machines Debian packages are for."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: restripe_package_info
short_description: Which machines Debian packages are for
description:
  - Reads packages as files, so that the machine that has them need not be a Debian. It judges nothing; the filter
    P(restripe.storage.mistakes#filter) does.
options:
  paths:
    description: The packages.
    type: list
    elements: path
    required: true
attributes:
  check_mode:
    description: Changes nothing in either mode.
    support: full
author: [Restripe]
"""

EXAMPLES = r"""
- name: Look at a package on this machine
  restripe.storage.restripe_package_info:
    paths: [restripe-agent_0.1.0_amd64.deb]
  delegate_to: localhost
"""

RETURN = r"""
packages:
  description: For each path what the package says of itself.
  type: list
  elements: dict
  returned: always
  contains:
    path:
      description: The path.
      type: str
    package:
      description: Name of the package.
      type: str
    architecture:
      description: The architecture that it is for, such as V(amd64).
      type: str
    problem:
      description: Why it cannot be read; empty where it can.
      type: str
"""

import io
import tarfile

from ansible.module_utils.basic import AnsibleModule

MAGIC = b"!<arch>\n"
HEADER = 60


def members(file):
    """Returns name and content of each file in an archive of ar up to the one that says what the package is."""
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("it is no Debian package")
    while True:
        header = file.read(HEADER)
        if len(header) < HEADER:
            raise ValueError("it is no whole Debian package")
        name, size = header[:16].decode("ascii").strip().rstrip("/"), int(header[48:58])
        content = file.read(size + size % 2)[:size]
        yield name, content


def fields_of(path):
    """Returns what a package says of itself, by the name of the field."""
    with open(path, "rb") as file:
        for name, content in members(file):
            if name.startswith("control.tar"):
                break
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            if member.name.lstrip("./") == "control":
                text = archive.extractfile(member).read().decode("utf-8")
                return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line and not line.startswith(" "))
    raise ValueError("it does not say what it is")


def look(path):
    found = {"path": path, "package": "", "architecture": "", "problem": ""}
    if not path:
        found["problem"] = "no package is named"
        return found
    try:
        fields = fields_of(path)
        found["package"], found["architecture"] = fields["Package"], fields["Architecture"]
    except (IOError, OSError) as failed:
        found["problem"] = "it cannot be read: %s" % (failed.strerror or failed)
    except (ValueError, KeyError, EOFError, tarfile.TarError) as failed:
        found["problem"] = "it is damaged: %s" % failed
    return found


def main():
    module = AnsibleModule(argument_spec={"paths": {"type": "list", "elements": "path", "required": True}}, supports_check_mode=True)
    module.exit_json(changed=False, packages=[look(path) for path in module.params["paths"]])


if __name__ == "__main__":
    main()

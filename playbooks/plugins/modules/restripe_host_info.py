#!/usr/bin/python
"""Tells what preflight has to know of a machine."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: restripe_host_info
short_description: What stands in the way of Restripe on a machine
description:
  - Looks at the clock, at disks, at who listens on ports, and at which version is installed. It judges nothing; the filter
    P(restripe.storage.mistakes#filter) does.
options:
  before:
    description: What the clock of the controller said before the question, in seconds since 1970. It is returned beside RV(clock).
    type: float
    default: 0
  ports:
    description: Ports of TCP to look at.
    type: list
    elements: int
    default: []
  labels:
    description: Labels of disks to look for.
    type: list
    elements: str
    default: []
  directories:
    description: Directories whose free space is of interest, whether they are there or not.
    type: list
    elements: path
    default: []
  program:
    description: The program whose version is of interest where it is there.
    type: path
    default: restripe-agent
attributes:
  check_mode:
    description: Changes nothing in either mode.
    support: full
author: [Restripe]
"""

EXAMPLES = r"""
- name: Look at the machine
  restripe.storage.restripe_host_info:
    ports: [7400]
    directories: [/srv/restripe]
"""

RETURN = r"""
clock:
  description: What the clock of the machine says, in seconds since 1970.
  type: float
  returned: always
before:
  description: O(before), as it was given.
  type: float
  returned: always
listeners:
  description: By port the names of the programs that listen on it.
  type: dict
  returned: always
missing_labels:
  description: Labels that no disk has.
  type: list
  elements: str
  returned: always
free_bytes:
  description: By directory how much may still be written there.
  type: dict
  returned: always
version:
  description: The version that is installed; empty where none is.
  type: str
  returned: always
architecture:
  description: The architecture as Debian names it, such as V(amd64).
  type: str
  returned: always
systemd:
  description: The version of systemd; 0 where it does not run.
  type: int
  returned: always
"""

import os
import platform
import time

from ansible.module_utils.basic import AnsibleModule

LISTENING = "0A"
# Names of the kernel that are not Debian's.
DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}


def listening_sockets(ports):
    """Returns the port of each socket that listens on one of the ports, by the socket's inode."""
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not os.path.exists(table):
            continue
        with open(table) as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                port = int(fields[1].rsplit(":", 1)[1], 16)
                if fields[3] == LISTENING and port in ports:
                    found[fields[9]] = port
    return found


def owners_of(sockets):
    """Returns by inode the name of the program that holds the socket."""
    owners = {}
    for process in os.listdir("/proc"):
        if not process.isdigit():
            continue
        try:
            with open("/proc/%s/comm" % process) as file:
                name = file.read().strip()
            for number in os.listdir("/proc/%s/fd" % process):
                target = os.readlink("/proc/%s/fd/%s" % (process, number))
                if target.startswith("socket:[") and target[8:-1] in sockets:
                    owners[target[8:-1]] = name
        except (IOError, OSError):
            continue  # it ended meanwhile
    return owners


def free_bytes(path):
    while not os.path.exists(path):
        path = os.path.dirname(path)
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def installed_version(module):
    path = module.get_bin_path(module.params["program"])
    if not path:
        return ""
    out = module.run_command([path, "version"])[1]
    words = out.split()
    return words[1].rstrip(",") if len(words) > 1 else ""


def architecture(module):
    path = module.get_bin_path("dpkg")
    found = module.run_command([path, "--print-architecture"])[1].strip() if path else ""
    return found or DEBIAN_NAMES.get(platform.machine(), platform.machine())


def systemd_version(module):
    if not os.path.isdir("/run/systemd/system"):
        return 0
    words = module.run_command(["systemctl", "--version"])[1].split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def main():
    module = AnsibleModule(
        argument_spec={
            "before": {"type": "float", "default": 0},
            "ports": {"type": "list", "elements": "int", "default": []},
            "labels": {"type": "list", "elements": "str", "default": []},
            "directories": {"type": "list", "elements": "path", "default": []},
            "program": {"type": "path", "default": "restripe-agent"},
        },
        supports_check_mode=True,
    )
    clock = time.time()
    sockets = listening_sockets(module.params["ports"])
    owners = owners_of(sockets)
    listeners = {}
    for inode, port in sockets.items():
        names = listeners.setdefault(str(port), [])
        if owners.get(inode, "?") not in names:
            names.append(owners.get(inode, "?"))
    module.exit_json(
        changed=False,
        clock=clock,
        before=module.params["before"],
        listeners=listeners,
        missing_labels=[label for label in module.params["labels"] if not os.path.exists("/dev/disk/by-label/" + label)],
        free_bytes={path: free_bytes(path) for path in module.params["directories"]},
        version=installed_version(module),
        architecture=architecture(module),
        systemd=systemd_version(module),
    )


if __name__ == "__main__":
    main()

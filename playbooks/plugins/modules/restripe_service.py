#!/usr/bin/python
"""Has a unit run with what its files say."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: restripe_service
short_description: A unit of systemd that runs with what its files say
description:
  - Enables and starts a unit, and starts it again if it runs since before one of its files changed. A handler would forget
    this when the play fails between the change and the restart.
options:
  name:
    description: The unit.
    type: str
    required: true
  files:
    description: Files that the unit reads when it starts. Those that are missing do not count.
    type: list
    elements: path
    default: []
  outdated:
    description: That one of the files changes in this play, which check mode cannot see by the file.
    type: bool
    default: false
  restart:
    description: Whether a unit that runs may be started again. Where it may not, RV(stale) tells that it has to be.
    type: bool
    default: true
  state:
    description: V(stopped) also disables the unit.
    type: str
    choices: [started, stopped]
    default: started
attributes:
  check_mode:
    description: Says whether the unit would be enabled, started or stopped.
    support: full
  diff_mode:
    description: Shows whether the unit is enabled and active.
    support: full
author: [Restripe]
"""

EXAMPLES = r"""
- name: Run the gateway
  restripe.storage.restripe_service:
    name: restripe-gateway.service
    files: [/etc/restripe/gateway.yaml, /usr/bin/restripe]
"""

RETURN = r"""
stale:
  description: Whether the unit still runs with what its files said before.
  type: bool
  returned: always
"""

import calendar
import os
import time

from ansible.module_utils.basic import AnsibleModule

PROPERTIES = ("LoadState", "ActiveState", "UnitFileState", "ExecMainStartTimestamp", "NeedDaemonReload")


def systemctl(module, *arguments):
    code, out, err = module.run_command(["systemctl"] + list(arguments))
    if code != 0:
        module.fail_json(msg="systemctl %s: %s; see `journalctl -u %s`" % (" ".join(arguments), (err or out).strip(), module.params["name"]))
    return out


def read_unit(module):
    """Returns what systemd knows of the unit."""
    out = systemctl(module, "show", module.params["name"], "--timestamp=us+utc", "--property=" + ",".join(PROPERTIES))
    return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)


def started_at(unit):
    """Returns when the unit was started, in seconds since 1970; None where it was not."""
    text = unit.get("ExecMainStartTimestamp", "")
    if not text or text == "n/a":
        return None
    whole, fraction = text.rsplit(" ", 1)[0].split(".")
    return calendar.timegm(time.strptime(whole, "%a %Y-%m-%d %H:%M:%S")) + float("0." + fraction)


def newer(path, instant):
    # When the file was put there, as packages bring files with the times that they were made.
    return os.path.exists(path) and os.stat(path).st_ctime > instant


def shown(unit):
    return "enabled: %s\nactive: %s\n" % (unit.get("UnitFileState"), unit.get("ActiveState"))


def start(module, unit, act):
    active = unit["ActiveState"] in ("active", "reloading", "activating")
    since = started_at(unit)
    stale = active and (module.params["outdated"] or any(newer(path, since or 0) for path in module.params["files"]))
    if unit.get("NeedDaemonReload") == "yes" or unit["LoadState"] == "not-found":
        act("daemon-reload")
    changed = False
    if unit["UnitFileState"] != "enabled":
        changed = True
        act("enable", module.params["name"])
    if not active:
        changed = True
        act("start", module.params["name"])
    elif stale and module.params["restart"]:
        changed, stale = True, False
        act("restart", module.params["name"])
    return changed, stale


def stop(module, unit, act):
    changed = False
    if unit["ActiveState"] not in ("inactive", "failed"):
        changed = True
        act("stop", module.params["name"])
    if unit["UnitFileState"] == "enabled":
        changed = True
        act("disable", module.params["name"])
    return changed, False


def main():
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "files": {"type": "list", "elements": "path", "default": []},
            "outdated": {"type": "bool", "default": False},
            "restart": {"type": "bool", "default": True},
            "state": {"type": "str", "choices": ["started", "stopped"], "default": "started"},
        },
        supports_check_mode=True,
    )

    def act(*arguments):
        if not module.check_mode:
            systemctl(module, *arguments)

    unit = read_unit(module)
    changed, stale = (start if module.params["state"] == "started" else stop)(module, unit, act)
    module.exit_json(changed=changed, stale=stale, diff={"before": shown(unit), "after": shown(read_unit(module))})


if __name__ == "__main__":
    main()

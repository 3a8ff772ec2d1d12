#!/usr/bin/python
"""Declares objects to the API server of the operator."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: restripe_declared
short_description: Declared objects, such as policies and backends
description:
  - Applies objects as C(restripe apply) does, and says what that changes as C(restripe diff) does.
options:
  content:
    description: The objects, as one or more documents of YAML.
    type: str
    required: true
  kubeconfig:
    description: Kubeconfig of the API server.
    type: path
    required: true
  program:
    description: The program C(restripe).
    type: path
    default: restripe
attributes:
  check_mode:
    description: Says what would change, and applies nothing.
    support: full
  diff_mode:
    description: Shows the fields that change.
    support: full
author: [Restripe]
"""

EXAMPLES = r"""
- name: Declare the policies
  restripe.storage.restripe_declared:
    content: "{{ lookup('ansible.builtin.file', 'photos.yaml') }}"
    kubeconfig: /var/lib/restripe/api/kubeconfig
"""

RETURN = r"""
applied:
  description: What C(restripe apply) said of each object.
  type: list
  elements: str
  returned: when something was applied
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.restripe.storage.plugins.module_utils.program import Program, Refused

# Exit code of `restripe diff` where something would change.
DIFFERS = 1


def main():
    module = AnsibleModule(
        argument_spec={
            "content": {"type": "str", "required": True},
            "kubeconfig": {"type": "path", "required": True},
            "program": {"type": "path", "default": "restripe"},
        },
        supports_check_mode=True,
    )
    if module.check_mode and not os.path.exists(module.params["kubeconfig"]):
        # What would run the API server first was not done either.
        module.exit_json(changed=True, diff={"before": "", "after": module.params["content"]})
    program = Program(module)
    server = ("-f", "-", "--kubeconfig", module.params["kubeconfig"])
    code, out, err = program.call("diff", *server, data=module.params["content"])
    if code not in (0, DIFFERS) or (code == DIFFERS and not out.strip()):
        module.fail_json(msg="comparing the declared objects: %s" % (err or out).strip())
    if code == 0:
        module.exit_json(changed=False)
    if module.check_mode:
        module.exit_json(changed=True, diff={"prepared": out})
    try:
        applied = program.run("apply", *server, data=module.params["content"])
    except Refused as refused:
        module.fail_json(msg=str(refused))
    module.exit_json(changed=True, applied=applied.splitlines(), diff={"prepared": out})


if __name__ == "__main__":
    main()

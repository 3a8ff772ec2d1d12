#!/usr/bin/python
"""Tells until when the authority of a cluster is valid."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: restripe_authority_info
short_description: Until when the authority of a cluster is valid
description:
  - Reads the certificate of the authority, without the program. It judges nothing; the filter
    P(restripe.storage.mistakes#filter) does.
options:
  authority:
    description: Directory of the authority.
    type: path
    required: true
attributes:
  check_mode:
    description: Changes nothing in either mode.
    support: full
author: [Restripe]
"""

EXAMPLES = r"""
- name: Look at the authority
  restripe.storage.restripe_authority_info:
    authority: /root/blue-ca
  delegate_to: localhost
"""

RETURN = r"""
path:
  description: The file with its certificate.
  type: str
  returned: always
expires:
  description: When it expires, in seconds since 1970. Absent where there is no authority yet, or none that can be read.
  type: float
  returned: when it can be read
problem:
  description: Why it cannot be read; empty where it can, and where there is none yet.
  type: str
  returned: always
"""

import os
import ssl

from ansible.module_utils.basic import AnsibleModule


def look(directory):
    path = os.path.join(directory, "ca.crt")
    found = {"path": path, "problem": ""}
    try:
        with open(path) as file:
            text = file.read()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=text)
        ends = [ssl.cert_time_to_seconds(one["notAfter"]) for one in context.get_ca_certs()]
        if ends:
            found["expires"] = max(ends)
        else:
            found["problem"] = "it has no certificate of an authority"
    except (IOError, OSError, ValueError) as failed:  # the errors of ssl are such, too
        if not os.path.lexists(path):
            return found
        found["problem"] = "it cannot be read: %s" % (getattr(failed, "strerror", None) or failed)
    return found


def main():
    module = AnsibleModule(argument_spec={"authority": {"type": "path", "required": True}}, supports_check_mode=True)
    module.exit_json(changed=False, **look(module.params["authority"]))


if __name__ == "__main__":
    main()

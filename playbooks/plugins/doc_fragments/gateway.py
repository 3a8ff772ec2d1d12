"""What every module takes that asks a gateway."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type


class ModuleDocFragment(object):
    DOCUMENTATION = r"""
options:
  gateway:
    description: Address of a gateway, V(https://HOST:PORT), or V(HOST:PORT) of one that does not ask.
    type: str
    required: true
  tls:
    description: Directory with a certificate of the cluster, of the role V(admin), by which the gateway knows who asks.
    type: path
  program:
    description: The program C(restripe).
    type: path
    default: restripe
"""

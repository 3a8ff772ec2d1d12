"""Calling the program restripe from a module."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

# What every module takes that asks a gateway.
GATEWAY_ARGUMENTS = {
    "gateway": {"type": "str", "required": True},
    "tls": {"type": "path"},
    "program": {"type": "path", "default": "restripe"},
}


class Refused(Exception):
    """The program ended with an error; its words say what, where and what to do."""


class Program:
    """The program, as whoever the module's parameters name."""

    def __init__(self, module):
        self.module = module
        self.environment = {"RESTRIPE_GATEWAY": "", "RESTRIPE_TLS": ""}
        if module.params.get("gateway"):
            self.environment["RESTRIPE_GATEWAY"] = module.params["gateway"]
        if module.params.get("tls"):
            self.environment["RESTRIPE_TLS"] = module.params["tls"]
        self.environment = {name: value for name, value in self.environment.items() if value}
        self.path = module.get_bin_path(module.params["program"], required=True)
        user = module.params.get("user")
        self.prefix = [module.get_bin_path("runuser", required=True), "--user=" + user, "--"] if user else []

    def run(self, *arguments, **options):
        """Returns what a command printed. Exit codes besides 0 are errors, unless `codes` has them."""
        code, out, err = self.call(*arguments, data=options.get("data"))
        if code not in options.get("codes", (0,)):
            raise Refused("restripe %s: %s" % (" ".join(arguments), (err or out).strip()))
        return out

    def call(self, *arguments, **options):
        """Returns exit code, standard output and standard error of a command."""
        return self.module.run_command(
            self.prefix + [self.path] + list(arguments), environ_update=self.environment, data=options.get("data"), binary_data=False
        )

    def read(self, *arguments, **options):
        """Returns what a command shows, as values."""
        return json.loads(self.run(*(arguments + ("-o", "json")), **options))

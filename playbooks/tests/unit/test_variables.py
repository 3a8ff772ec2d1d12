"""Every variable that people may set is documented, with its type and its default."""

import os
import re
import unittest

import yaml

PLAYBOOKS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
DEFAULT = re.compile(r"\b([a-z]+_[a-z_]+) \| default\(([^()]*)\)")
DOCUMENTED = re.compile(r"^\| (`[a-z_`, ]+`) \| ([^|]+) \| ([^|]+) \| ")

# What playbooks tell each other.
INTERNAL = {"drain_for_removal", "whole_can_lose", "whole_nodes", "whole_leaving"}


def read(*names):
    with open(os.path.join(PLAYBOOKS, *names)) as file:
        return file.read()


def files(folder):
    for where, _, names in os.walk(os.path.join(PLAYBOOKS, folder)):
        for name in sorted(names):
            if name.endswith(".yml"):
                yield os.path.relpath(os.path.join(where, name), PLAYBOOKS)


def of_roles():
    """Returns what argument_specs say of each variable, by role and by its name."""
    found = {}
    for role in sorted(os.listdir(os.path.join(PLAYBOOKS, "roles"))):
        found[role] = {}
        for entry in yaml.safe_load(read("roles", role, "meta", "argument_specs.yml"))["argument_specs"].values():
            found[role].update(entry.get("options") or {})
    return found


class Variables(unittest.TestCase):
    def test_those_of_roles(self):
        roles = of_roles()
        self.assertGreater(sum(len(options) for options in roles.values()), 50)
        for role, options in roles.items():
            for name, option in options.items():
                self.assertTrue(option.get("type") and option.get("description"), "%s has no type or no description" % name)
            defaults = yaml.safe_load(read("roles", role, "defaults", "main.yml")) or {}
            for name, value in defaults.items():
                self.assertIn(name, options, "role %s" % role)
                if "{{" in str(value):  # which the description tells in words
                    self.assertFalse(options[name].get("required"), name)
                else:
                    self.assertEqual(value, options[name].get("default"), name)
            for name, option in options.items():
                if "default" in option:
                    self.assertIn(name, defaults, "role %s" % role)

    def test_those_of_playbooks(self):
        documented = {}
        for line in read("README.md").splitlines():
            match = DOCUMENTED.match(line)
            if match:
                for name in re.findall("[a-z_]+", match.group(1)):
                    documented[name] = match.group(3)
        known = set().union(*of_roles().values())
        found = set()
        for path in files("playbooks"):
            for name, default in DEFAULT.findall(read(path)):
                if name in INTERNAL or name in known or name.startswith("ansible_") or not name.startswith(
                    ("drain_", "replace_", "rotate_", "backup_", "restore_", "whole_", "preflight_", "restripe_")
                ):
                    continue
                found.add(name)
                self.assertIn(name, documented, "%s: README.md does not have it in its table of variables" % path)
                if re.match("[0-9]|false|true", default):
                    self.assertTrue(documented[name].startswith(default), "%s: its default is %s" % (name, default))
        self.assertGreaterEqual(found, {"drain_minutes", "preflight_free_gib", "whole_minutes"})


if __name__ == "__main__":
    unittest.main()

import { parseDocument } from "yaml";

import type { Rule } from "./rules";

/** withRules is the text of a policy with other temperature rules; comments and all else stay. */
export function withRules(yaml: string, rules: readonly Rule[]): string {
  if (rules.length === 0) return yaml;
  const document = parseDocument(yaml);
  if (document.errors.length > 0 || !document.hasIn(["spec", "temperature", "rules"])) return yaml;
  const quantity = (value: number): number | string => (Number.isInteger(value) ? value : String(value));
  document.setIn(
    ["spec", "temperature", "rules"],
    document.createNode(
      rules.map(({ scheme, atLeast, below }) => ({
        scheme,
        ...(atLeast === undefined ? {} : { atLeast: quantity(atLeast) }),
        ...(below === undefined ? {} : { below: quantity(below) }),
      })),
    ),
  );
  return document.toString();
}

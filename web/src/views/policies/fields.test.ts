import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

import { below, fieldAbove, values } from "./fields";

const schema = readFileSync("../policies/schema.cue", "utf8");

/** The fields of a definition of the schema. */
function fieldsOf(definition: string): string[] {
  const body = new RegExp(`^#${definition}: \\{\\n([\\s\\S]*?)^\\}`, "m").exec(schema)?.[1] ?? "";
  return [...body.matchAll(/^\t([a-z]\w*)[?!]:/gm)].map((match) => match[1] ?? "").sort();
}

describe("completion", () => {
  it.each([
    ["spec", "RedundancyPolicySpec"],
    ["selector", "Selector"],
    ["reliability", "Reliability"],
    ["packing", "Packing"],
    ["hotKeys", "HotKeys"],
    ["temperature", "Temperature"],
    ["rules", "TemperatureRule"],
    ["pin", "Pin"],
    ["budget", "Budget"],
    ["windows", "Window"],
    ["approval", "Approval"],
    ["prices", "Prices"],
  ])("of %s offers what the schema has", (name, definition) => {
    expect(below[name]?.map(({ label }) => label).sort()).toEqual(fieldsOf(definition));
  });

  it("offers values that the schema knows", () => {
    for (const value of Object.values(values).flat()) expect(schema).toContain(`"${value}"`);
  });
});

describe("fieldAbove", () => {
  const lines = ["kind: RedundancyPolicy", "spec:", "  budget:", "    concurrency: 2", "", "    ", "  ", "  windows:", "  - kind: Deny", "    ", ""];
  it.each([
    [0, ""],
    [2, "spec"],
    [3, "budget"],
    [5, "budget"],
    [6, "spec"],
    [8, "windows"],
    [9, "windows"],
    [10, ""],
  ])("of line %i", (line, above) => {
    expect(fieldAbove(lines, line)).toBe(above);
  });
});

import { CompletionContext } from "@codemirror/autocomplete";
import { EditorState } from "@codemirror/state";
import { describe, expect, it } from "vitest";

import { Format } from "../../gen/console/v1/policies_pb";
import { completing } from "./completion";
import { below } from "./fields";

/** What is offered at the bar of a text, as it would be put in. */
function offered(format: Format, marked: string, explicit = true): string[] | undefined {
  const at = marked.indexOf("|");
  const state = EditorState.create({ doc: marked.replace("|", "") });
  const result = completing(format)(new CompletionContext(state, at, explicit));
  return result?.options.map(({ label, apply }) => (typeof apply === "string" ? apply : label));
}

const fields = (name: string): string[] => (below[name] ?? []).map(({ label }) => `${label}: `);

describe("completion of CUE", () => {
  it.each([
    ["sp|", ""],
    ["spec: |", "spec"],
    ["spec: {\n\tbud|", "spec"],
    ["spec: budget: con|", "budget"],
    ["photos: policies.#RedundancyPolicy & {\n\t|", ""],
    ["classes: {\n\tphotos: library.#Media & {\n\t\tspec: budget: |", "budget"],
    ["spec: temperature: rules: [{scheme: \"rep(3)\", at|", "rules"],
    ["spec: {\n\tpin: {|}\n}", "pin"],
  ])("offers the fields at %j", (text, name) => {
    expect(offered(Format.CUE, text)).toEqual(fields(name));
  });

  it("offers values in quotes, and without where there is a quote already", () => {
    expect(offered(Format.CUE, "spec: stopPolicy: |")).toEqual(['"None"', '"Hold"', '"HoldAndDrain"']);
    expect(offered(Format.CUE, 'spec: approval: mode: "M|')).toEqual(["Auto", "Manual", "ManualAbove"]);
  });

  it("offers nothing in texts, comments and labels, nor where no field can be", () => {
    for (const text of ["// sp|", 'metadata: name: "sp|', "metadata: labels: {|", "spec: budget: concurrency: 2 |", "spec: ladder: [|"]) {
      expect(offered(Format.CUE, text) ?? []).toEqual([]);
    }
    expect(offered(Format.CUE, "spec: |", false)).toBeUndefined();
  });
});

describe("completion of YAML", () => {
  it("offers the fields and values of the place", () => {
    expect(offered(Format.YAML, "spec:\n  budget:\n    |")).toEqual(fields("budget"));
    expect(offered(Format.YAML, "spec:\n  stopPolicy: H|")).toEqual(["None", "Hold", "HoldAndDrain"]);
    expect(offered(Format.YAML, "spec:\n  backendRef: local |")).toBeUndefined();
  });
});

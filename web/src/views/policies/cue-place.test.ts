import { describe, expect, it } from "vitest";

import { placeInCue } from "./cue-place";

describe("the place in CUE", () => {
  it.each([
    ["", []],
    ["spec: ", ["spec"]],
    ["spec: budget: ", ["spec", "budget"]],
    ["spec: budget: concurrency: 2\n", []],
    ["spec: {\n\tbudget: concurrency: 2\n\t", ["spec"]],
    ["spec: {\n\tladder: [\"rep(3)\", \"rs(4,2)\"]\n\t", ["spec"]],
    ["spec: temperature: rules: [{scheme: \"rep(3)\", ", ["spec", "temperature", "rules"]],
    ["spec: temperature: rules: [{scheme: \"rep(3)\"}, {", ["spec", "temperature", "rules"]],
    ["photos: policies.#RedundancyPolicy & {\n\t", ["photos"]],
    ["photos: policies.#RedundancyPolicy & {\n\tspec: {}\n}\nother: {\n", ["other"]],
    ['metadata: labels: "a.b/c": ', ["metadata", "labels", "a.b/c"]],
    ["spec: {\n// budget: {\n", ["spec"]],
    ['spec: {\n\tbackendRef: "a{b" \n', ["spec"]],
    ['spec: {note: """\n{ {\n"""\n', ["spec"]],
    ["}}\nspec: ", ["spec"]],
  ])("after %j", (text, path) => {
    expect(placeInCue(text).path).toEqual(path);
  });

  it.each([
    ["// spe", true],
    ['stopPolicy: "H', true],
    ['stopPolicy: "Hold"', false],
    ["spec: ", false],
    ["// note\n", false],
  ])("after %j is in a text or a comment: %s", (text, quoted) => {
    expect(placeInCue(text).quoted).toBe(quoted);
  });
});

import { describe, expect, it } from "vitest";

import { contrast, ink, luminance, stripeLetters, stripeTint } from "./palette";

describe("tints of stripes", () => {
  const stripes = Array.from({ length: 64 }, (_, i) => i);

  it("let letters be read in both themes", () => {
    for (const stripe of stripes) {
      for (const partition of ["old", "new"] as const) {
        const tint = stripeTint(stripe, partition);
        expect(contrast(tint.light, ink.light)).toBeGreaterThan(7);
        expect(contrast(tint.dark, ink.dark)).toBeGreaterThan(4.5);
      }
    }
  });

  it("tell old from new in grey too", () => {
    for (const stripe of stripes) {
      expect(luminance(stripeTint(stripe, "old").light)).toBeGreaterThan(luminance(stripeTint(stripe, "new").light) + 0.1);
      expect(luminance(stripeTint(stripe, "old").dark)).toBeLessThan(luminance(stripeTint(stripe, "new").dark));
    }
  });

  it("differ between neighbours", () => {
    for (const stripe of stripes.slice(1)) {
      expect(stripeTint(stripe, "old").light).not.toBe(stripeTint(stripe - 1, "old").light);
    }
  });
});

it("letters stripes as a, b, ..., z, aa", () => {
  expect([0, 25, 26, 27, 701, 702].map((stripe) => stripeLetters(stripe, "old"))).toEqual(["a", "z", "aa", "ab", "zz", "aaa"]);
  expect(stripeLetters(27, "new")).toBe("AB");
});

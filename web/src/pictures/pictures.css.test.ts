import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, it } from "vitest";

import { ink } from "./palette";

const css = readFileSync(resolve(import.meta.dirname, "pictures.css"), "utf8").replace(/\/\*[\s\S]*?\*\//g, "");

it("moves nothing for people who asked for less motion", () => {
  const allowed = /@media \(prefers-reduced-motion: no-preference\) \{[\s\S]*?\n\}\n/g;
  expect(css.match(allowed)).toHaveLength(1);
  expect(css.match(allowed)?.[0]).toContain("animation: picture-pulse");
  expect(css.replace(allowed, "")).not.toMatch(/\b(animation|transition)\b/);
});

it("marks what was added in other ways than by motion", () => {
  expect(css).toMatch(/\.picture-chip\.picture-pulse \.picture-tint \{[^}]*stroke-width: 2\.5/);
});

it("writes on tints in the inks whose contrast is known", () => {
  const inks = [...css.matchAll(/\.picture-chip text \{\s*fill: (#[0-9a-f]{6})/g)].map(([, colour]) => colour);
  expect(inks).toEqual([ink.light, ink.dark]);
});

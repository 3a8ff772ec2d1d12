import { describe, expect, it } from "vitest";

import { heatAt, heatColour, heatPlace, heatTicks } from "./heat-scale";
import { luminance } from "./palette";

const places = Array.from({ length: 101 }, (_, i) => i / 100);

describe("the scale of heat", () => {
  it("gets lighter all the way from cold to hot, so that grey keeps the order", () => {
    for (const place of places.slice(1)) {
      expect(luminance(heatColour(place))).toBeGreaterThan(luminance(heatColour(place - 0.01)));
    }
  });

  it("is blue where it is cold and orange where it is hot", () => {
    const channels = (colour: string) => [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16));
    const [coldRed = 0, coldGreen = 0, coldBlue = 0] = channels(heatColour(0));
    expect(coldBlue).toBeGreaterThan(coldRed + 40);
    expect(coldBlue).toBeGreaterThan(coldGreen + 40);
    const [hotRed = 0, hotGreen = 0, hotBlue = 0] = channels(heatColour(1));
    expect(hotRed).toBeGreaterThan(hotGreen + 30);
    expect(hotGreen).toBeGreaterThan(hotBlue + 30);
  });

  it("has no jump", () => {
    for (const place of places.slice(1)) {
      expect(luminance(heatColour(place)) - luminance(heatColour(place - 0.01))).toBeLessThan(0.03);
    }
  });

  it("is logarithmic, and ends where heats are no longer told apart", () => {
    expect(heatPlace(0)).toBe(0);
    expect(heatPlace(2 ** -6)).toBe(0);
    expect(heatPlace(2 ** 12)).toBe(1);
    expect(heatPlace(2 ** 20)).toBe(1);
    expect(heatPlace(8)).toBeCloseTo(0.5, 10);
    for (const heat of heatTicks) {
      expect(heatAt(heatPlace(heat))).toBeCloseTo(heat, 6);
    }
  });
});

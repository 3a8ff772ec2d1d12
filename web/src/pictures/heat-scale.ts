import { oklch } from "./palette";

// Accesses a day of a group: the range in which the gateways tell heats apart begins at 2^-6. Hotter than the upper end
// is as hot as the scale gets.
const coldest = 2 ** -6;
const hottest = 2 ** 12;

/** Where a heat lies between the cold and the hot end of the scale, from 0 to 1; it is logarithmic. */
export function heatPlace(accessesADay: number): number {
  if (accessesADay <= coldest) {
    return 0;
  }
  return Math.min(Math.log2(accessesADay / coldest) / Math.log2(hottest / coldest), 1);
}

/** The heat at a place of the scale. */
export function heatAt(place: number): number {
  return coldest * (hottest / coldest) ** place;
}

// Control points from cold blue to hot orange. Lightness only grows, so that grey keeps the order.
const points = [
  { lightness: 0.3, chroma: 0.1, hue: 262 },
  { lightness: 0.42, chroma: 0.13, hue: 285 },
  { lightness: 0.54, chroma: 0.15, hue: 330 },
  { lightness: 0.66, chroma: 0.16, hue: 385 },
  { lightness: 0.82, chroma: 0.155, hue: 430 },
] as const;

/** The colour at a place of the scale, in both themes the same. */
export function heatColour(place: number): string {
  const at = Math.min(Math.max(place, 0), 1) * (points.length - 1);
  const from = points[Math.floor(at)] ?? points[0];
  const to = points[Math.ceil(at)] ?? from;
  const part = at - Math.floor(at);
  const between = (a: number, b: number) => a + (b - a) * part;
  return oklch(between(from.lightness, to.lightness), between(from.chroma, to.chroma), between(from.hue, to.hue));
}

/** Heats that are easy to read on the scale, coldest first. */
export const heatTicks: readonly number[] = [0.02, 0.1, 1, 10, 100, 1000];

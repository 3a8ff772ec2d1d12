import { highestThreshold, lowestThreshold, type HeatBucket, type LadderRung, type Thresholds } from "./ladder";

/** A logarithmic axis of accesses a day, with a place at its left for what is hardly ever used. */
export interface HeatAxisScale {
  readonly left: number;
  readonly right: number;
  readonly lowest: number;
  readonly highest: number;
}

/** Where the axis begins and ends, so that everything on it can be seen. */
export function axisScale(rungs: readonly LadderRung[], thresholds: readonly (Thresholds | undefined)[], left: number, right: number): HeatAxisScale {
  const hottest = Math.max(
    2 ** 10,
    ...rungs.flatMap((rung) => rung.buckets.map((bucket) => bucket.below ?? bucket.atLeast * 2)),
    ...thresholds.flatMap((some) => (some?.values ?? []).map((value) => value * 4)),
  );
  return { left, right, lowest: lowestThreshold / 2, highest: Math.min(2 ** Math.ceil(Math.log2(hottest)), highestThreshold * 2) };
}

/** The place of a heat on the axis. */
export function xOf(scale: HeatAxisScale, heat: number): number {
  const place = Math.log2(Math.max(heat, scale.lowest) / scale.lowest) / Math.log2(scale.highest / scale.lowest);
  return scale.left + Math.min(place, 1) * (scale.right - scale.left);
}

/** The heat at a place of the axis. */
export function heatAtX(scale: HeatAxisScale, x: number): number {
  const place = Math.min(Math.max((x - scale.left) / (scale.right - scale.left), 0), 1);
  return scale.lowest * (scale.highest / scale.lowest) ** place;
}

/** The bytes of all rungs by heat, coldest first. */
export function bytesByHeat(rungs: readonly LadderRung[]): readonly HeatBucket[] {
  const sums = new Map<number, HeatBucket>();
  for (const bucket of rungs.flatMap((rung) => rung.buckets)) {
    const before = sums.get(bucket.atLeast);
    sums.set(bucket.atLeast, { ...bucket, bytes: bucket.bytes + (before?.bytes ?? 0) });
  }
  return [...sums.values()].sort((a, b) => a.atLeast - b.atLeast);
}

/** Powers of ten on the axis. */
export function axisTicks(scale: HeatAxisScale): readonly number[] {
  const ticks: number[] = [];
  for (let power = Math.ceil(Math.log10(scale.lowest)); 10 ** power <= scale.highest; power++) {
    ticks.push(10 ** power);
  }
  return ticks;
}

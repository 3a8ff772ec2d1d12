import type { HeatRow } from "./heat-map";
import type { LadderRung, Thresholds } from "./ladder";

const hour = 3_600_000;
const mib = 2 ** 20;

/** When the heat of the fixtures begins. */
export const heatStart = new Date("2026-11-20T18:00:00Z");

/** So many hours later. */
export function hoursLater(hours: number): Date {
  return new Date(heatStart.getTime() + hours * hour);
}

/** Two days of three classes: a day's rhythm, one that cools, one with a gap. */
export const heatRows: readonly HeatRow[] = [
  row("cache", (i) => 300 + 290 * Math.sin((i / 24) * 2 * Math.PI)),
  row("media/photos/originals/2026", (i) => 400 * 0.8 ** i),
  row("logs", (i) => (i > 20 && i < 31 ? undefined : 2 + (i % 5))),
  row("archive", () => 0),
];

function row(name: string, heat: (hours: number) => number | undefined): HeatRow {
  const samples = Array.from({ length: 48 }, (_, i) => ({ at: hoursLater(i + 0.5), heat: heat(i) }));
  return { name, samples: samples.flatMap(({ at, heat: known }) => (known === undefined ? [] : [{ at, heat: known }])) };
}

/** A class with bytes on all rungs but one. */
export const rungs: readonly LadderRung[] = [
  {
    scheme: "rep(3)",
    groups: 246,
    bytes: 512 * mib,
    storedBytes: 1536 * mib,
    buckets: [
      { atLeast: 64, below: 128, bytes: 90 * mib },
      { atLeast: 128, below: 256, bytes: 200 * mib },
      { atLeast: 256, below: 512, bytes: 222 * mib },
    ],
  },
  { scheme: "rs(4,2)", groups: 0, bytes: 0, storedBytes: 0, buckets: [] },
  {
    scheme: "rs(12,2)",
    groups: 4300,
    bytes: 2600 * mib,
    storedBytes: 3034 * mib,
    buckets: [
      { atLeast: 0, below: 1 / 64, bytes: 1700 * mib },
      { atLeast: 0.25, below: 0.5, bytes: 500 * mib },
      { atLeast: 2, below: 4, bytes: 400 * mib },
    ],
  },
];

export const thresholds: Thresholds = { schemes: ["rep(3)", "rs(4,2)", "rs(12,2)"], values: [100, 1] };

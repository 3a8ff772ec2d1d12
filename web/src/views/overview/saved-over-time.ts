import type { History, HistorySample } from "../../gen/console/v1/heat_pb";
import { order } from "../../words/time";

/** SavedOverTime is the sum of all classes at every moment that one was sampled. */
export interface SavedOverTime {
  /** Seconds since 1970. */
  times: number[];
  bytes: number[];
  stored: number[];
  /** What it would be with everything on its first rung. */
  hot: number[];
}

/** savedOverTime adds the classes up. They are not sampled at the same moments: each counts with its last sample. */
export function savedOverTime({ classes }: History): SavedOverTime {
  const events = classes.flatMap(({ samples }, i) => samples.map((sample) => ({ at: order(sample.at), i, sample }))).sort((a, b) => a.at - b.at);
  const last = new Map<number, HistorySample>();
  const sum: SavedOverTime = { times: [], bytes: [], stored: [], hot: [] };
  for (const [n, { at, i, sample }] of events.entries()) {
    last.set(i, sample);
    if (events[n + 1]?.at === at) continue;
    const now = [...last.values()];
    const stored = now.reduce((total, one) => total + Number(one.storedBytes), 0);
    sum.times.push(at / 1_000);
    sum.bytes.push(now.reduce((total, one) => total + Number(one.bytes), 0));
    sum.stored.push(stored);
    sum.hot.push(stored + now.reduce((total, one) => total + Number(one.savedBytes), 0));
  }
  return sum;
}

import { timestampDate } from "@bufbuild/protobuf/wkt";

import type { ClassHeat, ClassHistory, History, HistorySample } from "../gen/console/v1/heat_pb";
import { pinWords } from "../words/pin";
import type { HeatRow } from "./heat-map";

/**
 * The history of classes as the rows of a heat map, with the pins of how they are now. Samples of classes of which nothing
 * is stored have no heat.
 */
export function heatRowsFromApi(history: History, now: readonly ClassHeat[] = []): readonly HeatRow[] {
  const backends = new Set(history.classes.map((one) => one.backend));
  return history.classes.map((one) => {
    const pin = now.find((heat) => heat.backend === one.backend && heat.class === one.class)?.pin;
    return { name: nameOf(one, backends.size > 1), samples: one.samples.flatMap(sampleFromApi), ...(pin === undefined || pin.ended ? {} : { pinned: pinWords(pin) }) };
  });
}

function nameOf(one: ClassHistory, ambiguous: boolean): string {
  return ambiguous ? `${one.backend}/${one.class}` : one.class;
}

function sampleFromApi(sample: HistorySample) {
  let sum = 0;
  let bytes = 0;
  for (const bucket of sample.buckets) {
    sum += bucketMiddle(bucket.atLeast) * Number(bucket.bytes);
    bytes += Number(bucket.bytes);
  }
  return sample.at && bytes > 0 ? [{ at: timestampDate(sample.at), heat: sum / bytes }] : [];
}

const lastBucket = 2 ** 20;

/**
 * The geometric middle of a bucket of heats, each of which is twice as hot at its upper end. As in the console's means,
 * the first bucket counts as never used and the last as its lower bound.
 */
export function bucketMiddle(atLeast: number): number {
  return atLeast >= lastBucket ? atLeast : atLeast * Math.SQRT2;
}

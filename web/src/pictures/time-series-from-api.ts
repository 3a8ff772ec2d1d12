import { timestampDate } from "@bufbuild/protobuf/wkt";

import type { History, HistorySample } from "../gen/console/v1/heat_pb";
import type { Series } from "./time-series";

/** What of a sample is shown over time. */
export type Measure = "bytes" | "storedBytes" | "savedBytes";

/** One measure of every class over time. */
export function seriesOfClasses(history: History, measure: Measure): readonly Series[] {
  return history.classes.map((one) => ({ label: one.class, points: one.samples.flatMap((sample) => pointOf(sample, measure)) }));
}

function pointOf(sample: HistorySample, measure: Measure) {
  return sample.at ? [{ at: timestampDate(sample.at), value: Number(sample[measure]) }] : [];
}

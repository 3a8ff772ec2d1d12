import { timestampFromDate } from "@bufbuild/protobuf/wkt";

import type { HeatReport, History, WhatIfResponse } from "../gen/console/v1/heat_pb";

import { useQuestion } from "./asking";
import { useWatch, type Following } from "./console";

export function useHeat(): Following<HeatReport> {
  return useWatch("heat", (client, signal) => client.watchHeat({}, { signal }), (_before: HeatReport | undefined, message) => message);
}

/** useHistory is what every class, or one, was over the last hours. */
export function useHistory(question: { hours: number; samples: number; backend?: string; class?: string }): Following<History> {
  const { hours, samples, backend = "", class: className = "" } = question;
  return useQuestion({
    key: ["history", hours, samples, backend, className],
    refetchMilliseconds: 60_000,
    keepPrevious: true,
    ask: (client, signal) =>
      client.getHistory({ backend, class: className, samples, since: timestampFromDate(new Date(Date.now() - hours * 3_600_000)) }, { signal }),
  });
}

/** Threshold is the range of accesses a day that one scheme is for. */
export interface Threshold {
  scheme: string;
  atLeast?: number | undefined;
  below?: number | undefined;
}

/** useWhatIf is what would move if a policy had other thresholds. Nothing is kept. */
export function useWhatIf(policy: string, rules: Threshold[], enabled: boolean): Following<WhatIfResponse> {
  return useQuestion({
    key: ["what if", policy, rules],
    enabled,
    keepPrevious: true,
    ask: (client, signal) => client.whatIf({ policy, rules }, { signal }),
  });
}

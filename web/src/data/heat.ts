import { timestampFromDate } from "@bufbuild/protobuf/wkt";

import type { HeatReport, History, WhatIfResponse } from "../gen/console/v1/heat_pb";

import { useQuestion } from "./asking";
import { useWatch, type Following } from "./console";

export function useHeat(): Following<HeatReport> {
  return useWatch("heat", (client, signal) => client.watchHeat({}, { signal }), (_before: HeatReport | undefined, message) => message);
}

/** useHistory is what one class, or so many of those with the most bytes, was over the last hours. */
export function useHistory(question: { hours: number; samples: number; classes: number; backend?: string; class?: string }): Following<History> {
  const { hours, samples, classes, backend = "", class: className = "" } = question;
  return useQuestion({
    key: ["history", hours, samples, classes, backend, className],
    refetchMilliseconds: 60_000,
    keepPrevious: true,
    ask: (client, signal) =>
      client.getHistory({ backend, class: className, samples, classes, since: timestampFromDate(new Date(Date.now() - hours * 3_600_000)) }, { signal }),
  });
}

/** useTotalHistory is what all classes together were over the last hours. */
export function useTotalHistory(question: { hours: number; samples: number }): Following<History> {
  const { hours, samples } = question;
  return useQuestion({
    key: ["total history", hours, samples],
    refetchMilliseconds: 60_000,
    keepPrevious: true,
    ask: (client, signal) => client.getHistory({ samples, total: true, since: timestampFromDate(new Date(Date.now() - hours * 3_600_000)) }, { signal }),
  });
}

/** useNewestSamples is the last sample of each class, of so many with the most bytes. */
export function useNewestSamples(classes: number): Following<History> {
  return useQuestion({
    key: ["newest samples", classes],
    refetchMilliseconds: 60_000,
    keepPrevious: true,
    ask: (client, signal) => client.getHistory({ samples: 1, classes }, { signal }),
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

/** useWhatIfPinned is what would move if a policy were pinned to a scheme, or were not where there is none. Nothing is kept. */
export function useWhatIfPinned(policy: string, scheme: string, until: Date | undefined, enabled: boolean): Following<WhatIfResponse> {
  return useQuestion({
    key: ["what if pinned", policy, scheme, until?.getTime()],
    enabled,
    keepPrevious: true,
    ask: (client, signal) => client.whatIf({ policy, pin: { scheme, ...(until === undefined ? {} : { until: timestampFromDate(until) }) } }, { signal }),
  });
}

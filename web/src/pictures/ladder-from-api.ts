import { create } from "@bufbuild/protobuf";

import type { ClassHeat, WhatIfResponse } from "../gen/console/v1/heat_pb";
import { TemperatureRuleSchema, type TemperatureRule } from "../gen/console/v1/policies_pb";
import type { HeatRule, LadderRung } from "./ladder";
import type { Consequence } from "./LadderEditor";

/** The rungs of a class with what lies on them and how hot it is. */
export function rungsFromApi(heat: ClassHeat): readonly LadderRung[] {
  return heat.rungs.map((rung) => ({
    scheme: rung.scheme,
    groups: Number(rung.groups),
    bytes: Number(rung.bytes),
    storedBytes: Number(rung.storedBytes),
    buckets: rung.buckets.map(({ atLeast, below, bytes }) => ({ atLeast, below, bytes: Number(bytes) })),
  }));
}

/** The temperature rules of a policy. */
export function rulesFromApi(rules: readonly TemperatureRule[]): readonly HeatRule[] {
  return rules.map(({ scheme, atLeast, below }) => ({ scheme, atLeast, below }));
}

/** Rules as WhatIf asks for them. */
export function rulesToApi(rules: readonly HeatRule[]): TemperatureRule[] {
  return rules.map(({ scheme, atLeast, below }) =>
    create(TemperatureRuleSchema, { scheme, ...(atLeast === undefined ? {} : { atLeast }), ...(below === undefined ? {} : { below }) }),
  );
}

/** What WhatIf answers as the consequence of thresholds. */
export function consequenceFromApi(answer: WhatIfResponse): Consequence {
  const then = answer.then;
  return {
    kind: "known",
    line: then?.unknown ? `Nothing can be said yet: ${then.unknown}` : (then?.line ?? ""),
    warnings: then?.feasibility.map(({ message }) => message) ?? [],
    sentBytes: then?.total ? Number(then.total.bytesSent) : undefined,
    rungs: answer.rungs.map(({ scheme, bytesNow, bytesThen }) => ({ scheme, bytesNow: Number(bytesNow), bytesThen: Number(bytesThen) })),
  };
}

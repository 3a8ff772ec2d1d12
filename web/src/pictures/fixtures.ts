// Plans as the console draws them: its answers to GetPicture, as they are.
import { fromJson, type JsonValue } from "@bufbuild/protobuf";

import { PictureSchema } from "../gen/console/v1/plans_pb";
import type { StripePlan } from "./stripe-picture";
import { stripePlanFromApi } from "./stripe-picture-from-api";
import copyToPool from "./testdata/copy-rs2-rs4.json";
import dropRow from "./testdata/drop-rs4-3-rs4-2.json";
import addRow from "./testdata/grow-rs4-2-rs4-3.json";
import mergeCopies from "./testdata/merge-rep3-rs12.json";
import merge from "./testdata/merge-rs4-rs12.json";
import narrow from "./testdata/narrow-rs12-rs4.json";
import throughProxy from "./testdata/proxy-rs4-rs6.json";
import wide from "./testdata/wide-rs32-rs64.json";
import widen from "./testdata/widen-rs4-rs5.json";

const plan = (picture: unknown): StripePlan => stripePlanFromApi(fromJson(PictureSchema, picture as JsonValue));

export const plans = {
  merge: plan(merge),
  mergeCopies: plan(mergeCopies),
  widen: plan(widen),
  narrow: plan(narrow),
  wide: plan(wide),
  throughProxy: plan(throughProxy),
  copyToPool: plan(copyToPool),
  dropRow: plan(dropRow),
  addRow: plan(addRow),
} as const;

/** Names of nodes for every position of a plan: node-1, node-2, ... */
export function nodesOf(stripePlan: StripePlan, name = "node-"): readonly string[] {
  return Array.from({ length: stripePlan.columns + stripePlan.parities.length }, (_, i) => `${name}${i + 1}`);
}

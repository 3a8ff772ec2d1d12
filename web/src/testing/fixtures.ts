import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";

import type { NodeSchema } from "../gen/console/v1/nodes_pb";
import { Safety, type OverviewSchema } from "../gen/console/v1/overview_pb";
import type { PolicySchema } from "../gen/console/v1/policies_pb";
import type { TransitionSchema } from "../gen/console/v1/transitions_pb";

export const morning = timestampFromDate(new Date("2026-01-02T08:00:00Z"));

export const transition = {
  name: "media-rs4-2-1",
  policy: "media",
  backend: "local",
  class: "media",
  from: "rep(3)",
  to: "rs(4,2)",
  heat: "less than 100 times a day",
  reason: "40 groups are used less than 100 times a day",
  state: "Running",
  planHash: "abc",
  created: morning,
  started: morning,
  cost: { groups: 40n, traffic: { bytesRead: 120n << 20n, bytesSent: 0n, bytesWritten: 30n << 20n }, peakBytes: 1n << 20n, price: "0.01", savingPerMonth: "0.20" },
  progress: {
    groupsTotal: 40n,
    groupsDone: 10n,
    bytesTotal: 40n << 20n,
    bytesDone: 10n << 20n,
    bytesPerSecond: 1n << 20n,
    etaSeconds: 840,
    etaSecondsLow: 660,
    etaSecondsHigh: 1140,
    predicted: { bytesRead: 30n << 20n, bytesSent: 0n, bytesWritten: 7n << 20n },
    measured: { bytesRead: 30n << 20n, bytesSent: 0n, bytesWritten: 7n << 20n },
  },
} satisfies MessageInitShape<typeof TransitionSchema>;

export const overview = {
  at: morning,
  safety: Safety.SAFE,
  safetyLine: "All 1,200 objects can lose 2 nodes.",
  canLose: 2,
  objects: 1200n,
  groups: 300n,
  protectedBytes: 100n << 20n,
  storedBytes: 184n << 20n,
  overhead: 1.84,
  savedBytes: 116n << 20n,
  savedPerMonth: 2.5,
  classes: [
    {
      backend: "local",
      class: "media",
      policy: "media",
      objects: 1200n,
      bytes: 100n << 20n,
      storedBytes: 184n << 20n,
      overhead: 1.84,
      savedBytes: 116n << 20n,
      rungs: [
        { scheme: "rep(3)", groups: 10n, bytes: 20n << 20n, storedBytes: 60n << 20n, meanHeat: 240 },
        { scheme: "rs(4,2)", groups: 290n, bytes: 80n << 20n, storedBytes: 124n << 20n, meanHeat: 3 },
      ],
    },
  ],
  moving: [transition],
  movingTotal: 1n,
  movingLine: "1 transition is moving 30 MiB, about 14 min left.",
  nodes: { total: 14, byState: { up: 13, draining: 1 } },
  backends: [{ backend: "local", state: "whole", line: "Every block is there.", load: { windowSeconds: 10, requests: 80n, p50Seconds: 0.004, p99Seconds: 0.02, transitionBytesPerSecond: 1048576 } }],
  sources: [{ name: "API server", answered: morning }],
  safetyAt: morning,
} satisfies MessageInitShape<typeof OverviewSchema>;

export const node = {
  backend: "local",
  name: "n1",
  address: "127.0.0.1:7471",
  failureDomain: "rack-a",
  state: "up",
  declared: "up",
  storeKind: "file",
  durable: true,
  usedBytes: 20n << 30n,
  capacityBytes: 100n << 30n,
  slots: 56n,
} satisfies MessageInitShape<typeof NodeSchema>;

export const policy = {
  name: "media",
  backend: "local",
  class: "media",
  prefixes: ["media/"],
  ladder: ["rep(3)", "rs(4,2)"],
  stopPolicy: "None",
  approval: "Manual",
  rungs: [
    { scheme: "rep(3)", groups: 10n, bytes: 20n << 20n, storedBytes: 60n << 20n },
    { scheme: "rs(4,2)", groups: 290n, bytes: 80n << 20n, storedBytes: 124n << 20n },
  ],
  stored: "184 MiB, 1.84x",
  savedBytes: 116n << 20n,
  savedPerMonth: 2.5,
  conditions: [{ type: "Ready", status: "True", reason: "Converged", message: "Everything is where it belongs." }],
  rules: [
    { scheme: "rep(3)", atLeast: 100 },
    { scheme: "rs(4,2)", below: 100 },
  ],
  bytesPerSecond: 40n << 20n,
} satisfies MessageInitShape<typeof PolicySchema>;

import type { GroupOnNodes } from "./group-layout";

/** A group of so many columns and rows with two parity nodes, whose first slots have the given states. */
export function groupOf(scheme: string, columns: number, rows: number, states: readonly string[] = []): GroupOnNodes {
  return {
    id: "g4711",
    scheme,
    rows,
    columns,
    cellBytes: 65536,
    packed: rows === 1,
    bytes: 700_000,
    slots: Array.from({ length: columns + 2 }, (_, slot) => ({
      slot,
      role: slot < columns ? ("data" as const) : ("parity" as const),
      node: `n${slot + 1}`,
      state: states[slot] ?? "ok",
    })),
  };
}

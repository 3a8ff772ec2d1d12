import type { Group } from "../gen/console/v1/objects_pb";
import type { GroupOnNodes } from "./group-layout";

/** The layout of a group as GroupLayout draws it. */
export function groupFromApi(group: Group): GroupOnNodes {
  return {
    id: group.id,
    scheme: group.scheme,
    rows: group.rows,
    columns: group.columns,
    cellBytes: Number(group.cellBytes),
    packed: group.packed,
    bytes: Number(group.bytes),
    slots: group.slots.map(({ slot, role, node, state }) => ({ slot, role: role === "parity" ? "parity" : "data", node, state })),
  };
}

/** A group of an object, or of nothing but itself: its columns and parity rows, each on a node of its own. */
export interface GroupOnNodes {
  readonly id: string;
  readonly scheme: string;
  readonly rows: number;
  readonly columns: number;
  readonly cellBytes: number;
  /** Other objects share it. */
  readonly packed: boolean;
  /** Of the object. */
  readonly bytes: number;
  readonly slots: readonly SlotOnNode[];
}

export interface SlotOnNode {
  readonly slot: number;
  readonly role: "data" | "parity";
  readonly node: string;
  /** ok, missing, unreachable or suspect. */
  readonly state: string;
}

/** "All 14 parts are there.", or what is not and what it means. */
export function wholeness(group: GroupOnNodes, canLose: number | undefined): string {
  const wrong = group.slots.filter((slot) => slot.state !== "ok");
  if (wrong.length === 0) {
    return `All ${group.slots.length} parts are there.`;
  }
  const count = `${wrong.length} of ${group.slots.length} parts ${wrong.length === 1 ? "is" : "are"} not as they should be`;
  if (canLose === undefined) {
    return `${count}.`;
  }
  const left = canLose - wrong.length;
  if (left < 0) {
    return `${count}, and ${group.scheme} can lose ${canLose} of a stripe: some of the data may not be readable.`;
  }
  return left === 0
    ? `${count}: readable, but the loss of one more may lose data.`
    : `${count}: readable, and ${left} more can be lost.`;
}

import type { Drain } from "../../gen/console/v1/nodes_pb";
import { counted, type Whole } from "../../pictures/amount";

/** How many slots a drain has moved away, as far as that is known. */
export const slotsGone = ({ slotsTotal, slotsLeft }: Drain): bigint => (slotsLeft < 0n ? 0n : slotsTotal - slotsLeft);

/** "42 slots of 56 slots moved away". */
export const slotsMoved = (done: Whole, total: Whole): string => `${counted(done, "slot")} of ${counted(total, "slot")} moved away`;

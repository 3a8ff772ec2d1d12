import type { Node, NodeRates } from "../../gen/console/v1/nodes_pb";
import { rated } from "../../pictures/amount";

/** The bytes a second that a node reads, sends and writes, together. */
export function workOf({ rates }: Node): bigint {
  return rates === undefined ? 0n : rates.read + rates.sent + rates.written;
}

/** "1.2 MiB/s, 0 B/s, 300 KiB/s", or that there is nothing. */
export function workWords(rates: NodeRates | undefined): string {
  if (rates === undefined || rates.read + rates.sent + rates.written === 0n) return "idle";
  return [rates.read, rates.sent, rates.written].map(rated).join(", ");
}

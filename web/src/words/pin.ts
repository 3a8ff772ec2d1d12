import type { Pin } from "../gen/console/v1/policies_pb";
import { moment } from "./time";

/** pinWords is a pin in a sentence: until when, by whom and why, or that it has ended. */
export function pinWords({ scheme, until, by, reason, ended }: Pin): string {
  if (ended) return `The pin to ${scheme} ended ${moment(until)} and has no effect any more.`;
  return `Pinned to ${scheme} until ${moment(until)}${by === "" ? "" : ` by ${by}`}${reason === "" ? "." : `: ${reason}`}`;
}

/** Lasting is how long a pin is to last, as people choose it. */
export type Lasting = "day" | "week" | "month" | "other";

export const lastings: readonly { readonly value: Lasting; readonly label: string }[] = [
  { value: "day", label: "1 day" },
  { value: "week", label: "1 week" },
  { value: "month", label: "1 month" },
  { value: "other", label: "Other" },
];

const day = 86_400_000;

/** pinEnd is when a pin ends that is set now; undefined where no time was given. other is what a field for times has. */
export function pinEnd(lasting: Lasting, now: Date, other: string): Date | undefined {
  if (lasting === "other") {
    const at = new Date(other);
    return other === "" || Number.isNaN(at.getTime()) ? undefined : at;
  }
  return new Date(now.getTime() + { day: 1, week: 7, month: 30 }[lasting] * day);
}

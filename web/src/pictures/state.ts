/** How a state is drawn: a shape of its own for each meaning, so that colour is never the only sign. */
export type Sign = "check" | "moving" | "pause" | "wait" | "hand" | "warning" | "cross" | "out" | "question" | "dot";

/** What a state means for whoever looks. */
export type Tone = "good" | "busy" | "quiet" | "careful" | "bad";

export interface StateLook {
  readonly sign: Sign;
  readonly tone: Tone;
}

// The states of transitions, nodes, slots and backends in the contract of the console.
const looks: Readonly<Record<string, StateLook>> = {
  waiting: { sign: "wait", tone: "quiet" },
  unapproved: { sign: "hand", tone: "careful" },
  running: { sign: "moving", tone: "busy" },
  paused: { sign: "pause", tone: "careful" },
  done: { sign: "check", tone: "good" },
  cancelled: { sign: "out", tone: "quiet" },
  failed: { sign: "cross", tone: "bad" },
  up: { sign: "check", tone: "good" },
  suspect: { sign: "question", tone: "careful" },
  down: { sign: "cross", tone: "bad" },
  out: { sign: "out", tone: "bad" },
  draining: { sign: "moving", tone: "busy" },
  ok: { sign: "check", tone: "good" },
  missing: { sign: "cross", tone: "bad" },
  unreachable: { sign: "warning", tone: "bad" },
  whole: { sign: "check", tone: "good" },
  repairing: { sign: "moving", tone: "busy" },
  unknown: { sign: "question", tone: "quiet" },
  safe: { sign: "check", tone: "good" },
  reduced: { sign: "warning", tone: "careful" },
  unprotected: { sign: "cross", tone: "bad" },
  behind: { sign: "cross", tone: "bad" },
  "catalog behind": { sign: "cross", tone: "bad" },
  empty: { sign: "dot", tone: "quiet" },
};

/** The look of a state; one that is not known is a dot beside its word. */
export function stateLook(state: string): StateLook {
  return looks[state.toLowerCase()] ?? { sign: "dot", tone: "quiet" };
}

/** Every state with a look of its own. */
export const knownStates: readonly string[] = Object.keys(looks);

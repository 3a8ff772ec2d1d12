import type { Policy } from "../../gen/console/v1/policies_pb";
import { StateMark } from "../../pictures/StateMark";

/** stateText is how a policy is, in a word or two. */
export function stateText(policy: Policy): string {
  if (policy.deleting) return "being deleted";
  if (policy.stopPolicy === "Hold") return "held";
  if (policy.stopPolicy === "HoldAndDrain") return "held, ending what runs";
  const is = (type: string) => policy.conditions.find((condition) => condition.type === type)?.status;
  if (is("Stalled") === "True") return "stalled";
  if (is("Ready") === "True") return "ready";
  if (is("Progressing") === "True") return "moving";
  if (is("AwaitingApproval") === "True") return "to approve";
  if (is("Paused") === "True") return "paused";
  return is("Reconciling") === "True" ? "converging" : "not ready";
}

const marks: Record<string, string> = { ready: "Done", moving: "Running", "to approve": "Unapproved", paused: "Paused", stalled: "Failed", converging: "Waiting", "not ready": "Waiting", held: "Paused", "held, ending what runs": "Paused", "being deleted": "Cancelled" };

/** PolicyState is the same with its mark, and the operator's words for whoever points at it. */
export function PolicyState({ policy }: { policy: Policy }) {
  const text = stateText(policy);
  const ready = policy.conditions.find(({ type }) => type === "Ready");
  return <StateMark state={marks[text] ?? text} word={text} why={ready?.message ?? ""} />;
}

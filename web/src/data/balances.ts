import type { AddedNode, AddNodePlan, BalanceChange, BalancePlan, BalanceReport } from "../gen/console/v1/balance_pb";

import { useAction, useQuestion, type Action } from "./asking";
import type { Following } from "./console";
import type { NodeOf } from "./nodes";

export function useBalances(): Following<BalanceReport> {
  return useQuestion({ key: ["balances"], refetchMilliseconds: 2_000, ask: (client, signal) => client.getBalances({}, { signal }) });
}

/** useBalancePlan asks what a balance would move at a rate; 0 is no limit. */
export function useBalancePlan(backend: string, bytesPerSecond: bigint, enabled: boolean): Following<BalancePlan> {
  return useQuestion({
    key: ["balance plan", backend, String(bytesPerSecond)],
    enabled,
    keepPrevious: true,
    ask: (client, signal) => client.planBalance({ backend, bytesPerSecond }, { signal }),
  });
}

/** BalanceSteering is what can be done to the balance of a backend. */
export interface BalanceSteering {
  start: Action<{ backend: string; bytesPerSecond?: bigint }, BalanceChange>;
  pause: Action<{ backend: string }, BalanceChange>;
  resume: Action<{ backend: string }, BalanceChange>;
  cancel: Action<{ backend: string }, BalanceChange>;
}

export function useBalanceSteering(): BalanceSteering {
  return {
    start: useAction((client, request) => client.startBalance(request)),
    pause: useAction((client, request) => client.pauseBalance(request)),
    resume: useAction((client, request) => client.resumeBalance(request)),
    cancel: useAction((client, request) => client.cancelBalance(request)),
  };
}

/** NewNode is a node that is to be a member. */
export interface NewNode extends NodeOf {
  address: string;
  failureDomain: string;
  spare: boolean;
  balance: boolean;
}

/** NodeAdding says whether a node could be added, and adds it. */
export interface NodeAdding {
  look: Action<NewNode, AddNodePlan>;
  add: Action<NewNode, AddedNode>;
}

export function useNodeAdding(): NodeAdding {
  return {
    look: useAction((client, request) => client.planAddNode(request)),
    add: useAction((client, request) => client.addNode(request)),
  };
}

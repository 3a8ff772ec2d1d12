import type { PlanRollbackResponse, Transition, TransitionChange, TransitionDetail, TransitionList } from "../gen/console/v1/transitions_pb";

import { useAction, useQuestion, type Action } from "./asking";
import { useWatch, type Following } from "./console";
import { withMessage, type Listing } from "./listing";

function reduce(before: Listing<Transition> | undefined, message: TransitionList): Listing<Transition> {
  return withMessage(before, message, message.transitions, message.removed, (transition) => transition.name);
}

/** useTransitions follows every transition, or those that have not ended. */
export function useTransitions(active: boolean): Following<Listing<Transition>> {
  return useWatch(active ? "transitions active" : "transitions", (client, signal) => client.watchTransitions({ filter: { active } }, { signal }), reduce);
}

export function useTransition(name: string): Following<TransitionDetail> {
  return useQuestion({
    key: ["transition", name],
    ask: (client, signal) => client.getTransition({ name }, { signal }),
    refetchMilliseconds: 2_000,
  });
}

/** useRollbackCost asks what taking a transition back would move and cost, while that is wanted. */
export function useRollbackCost(name: string, wanted: boolean): Following<PlanRollbackResponse> {
  return useQuestion({
    key: ["rollback", name],
    ask: (client, signal) => client.planRollback({ name }, { signal }),
    enabled: wanted,
  });
}

/** Steering is everything that can be done to a transition. */
export interface Steering {
  approve: Action<{ name: string; planHash: string }, TransitionChange>;
  pause: Action<{ name: string }, TransitionChange>;
  resume: Action<{ name: string }, TransitionChange>;
  cancel: Action<{ name: string }, TransitionChange>;
  rollback: Action<{ name: string; reason: string }, TransitionChange>;
  throttle: Action<{ name: string; bytesPerSecond: bigint }, TransitionChange>;
}

export function useSteering(): Steering {
  return {
    approve: useAction((client, request) => client.approveTransition(request)),
    pause: useAction((client, request) => client.pauseTransition(request)),
    resume: useAction((client, request) => client.resumeTransition(request)),
    cancel: useAction((client, request) => client.cancelTransition(request)),
    rollback: useAction((client, request) => client.rollbackTransition(request)),
    throttle: useAction((client, request) => client.throttleTransition(request)),
  };
}

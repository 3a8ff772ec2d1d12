import { timestampFromDate } from "@bufbuild/protobuf/wkt";

import type { PolicyPlan } from "../gen/console/v1/plans_pb";
import { Hold, type Format } from "../gen/console/v1/policies_pb";
import type {
  ApplyPolicyResponse,
  DeletePolicyResponse,
  DiffPolicyResponse,
  HoldPolicyResponse,
  PinPolicyResponse,
  UnpinPolicyResponse,
  LintPolicyResponse,
  PlanPolicyResponse,
  Policy,
  PolicyDetail,
  PolicyList,
} from "../gen/console/v1/policies_pb";

import { useAction, useQuestion, type Action } from "./asking";
import { useWatch, type Following } from "./console";
import { withMessage, type Listing } from "./listing";

function reduce(before: Listing<Policy> | undefined, message: PolicyList): Listing<Policy> {
  return withMessage(before, message, message.policies, message.removed, (policy) => policy.name);
}

export function usePolicies(): Following<Listing<Policy>> {
  return useWatch("policies", (client, signal) => client.watchPolicies({}, { signal }), reduce);
}

export function usePolicy(name: string): Following<PolicyDetail> {
  return useQuestion({ key: ["policy", name], enabled: name !== "", ask: (client, signal) => client.getPolicy({ name }, { signal }) });
}

/** Draft is a text with declared objects that somebody is writing. */
export interface Draft {
  name: string;
  text: string;
  format: Format;
}

const draftKey = (draft: Draft): readonly unknown[] => [draft.name, draft.format, draft.text];

export function useLint(draft: Draft): Following<LintPolicyResponse> {
  return useQuestion({
    key: ["lint", ...draftKey(draft)],
    enabled: draft.text !== "",
    keepPrevious: true,
    ask: (client, signal) => client.lintPolicy({ document: draft }, { signal }),
  });
}

/** useDiff is what applying a text would change; force: taking over fields that somebody else has set. */
export function useDiff(draft: Draft, force: boolean, enabled: boolean): Following<DiffPolicyResponse> {
  return useQuestion({
    key: ["diff", force, ...draftKey(draft)],
    enabled: enabled && draft.text !== "",
    keepPrevious: true,
    ask: (client, signal) => client.diffPolicy({ document: draft, force }, { signal }),
  });
}

export function useDraftPlan(draft: Draft, enabled: boolean): Following<PlanPolicyResponse> {
  return useQuestion({
    key: ["draft plan", ...draftKey(draft)],
    enabled: enabled && draft.text !== "",
    keepPrevious: true,
    refetchMilliseconds: 15_000,
    ask: (client, signal) => client.planPolicy({ document: draft }, { signal }),
  });
}

/** usePolicyPlan is what a policy that is declared would move now. */
export function usePolicyPlan(name: string): Following<PolicyPlan> {
  return useQuestion({
    key: ["plan", name],
    enabled: name !== "",
    refetchMilliseconds: 10_000,
    ask: async (client, signal) => {
      const { yaml } = await client.getPolicy({ name }, { signal });
      const { plans, findings } = await client.planPolicy({ document: { name, text: yaml } }, { signal });
      const plan = plans.find((one) => one.policy === name);
      if (plan === undefined) {
        throw new Error(findings[0]?.message ?? `The console planned nothing for the policy ${name}.`);
      }
      return plan;
    },
  });
}

export function useApply(): Action<Draft & { planHash: string; force: boolean }, ApplyPolicyResponse> {
  return useAction((client, { planHash, force, ...document }) => client.applyPolicy({ document, planHash, force }));
}

export function useDeletePolicy(): Action<{ name: string; confirm: string }, DeletePolicyResponse> {
  return useAction((client, request) => client.deletePolicy(request));
}

export function useHoldPolicy(): Action<{ name: string; hold: Hold }, HoldPolicyResponse> {
  return useAction((client, request) => client.holdPolicy(request));
}

export function usePinPolicy(): Action<{ name: string; scheme: string; until: Date; reason: string }, PinPolicyResponse> {
  return useAction((client, { until, ...request }) => client.pinPolicy({ ...request, until: timestampFromDate(until) }));
}

export function useUnpinPolicy(): Action<{ name: string }, UnpinPolicyResponse> {
  return useAction((client, request) => client.unpinPolicy(request));
}

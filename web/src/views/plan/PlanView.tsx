import { Group, NativeSelect, Stack, Text } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";

import { usePolicies, usePolicyPlan } from "../../data/policies";
import { useTransitions } from "../../data/transitions";
import type { Policy } from "../../gen/console/v1/policies_pb";
import { Empty, Shown } from "../../states/States";
import { Approvals } from "./Approvals";
import { GroupPicture } from "./GroupPicture";
import { PolicyPlanned } from "./PolicyPlanned";

const route = getRouteApi("/plan");

/** PlanView is what will happen, what it costs before anything moves, and what else it could cost. */
export function PlanView() {
  const policies = usePolicies();
  const { policy, from, to } = route.useSearch();
  return (
    <Stack gap="md">
      <title>Plan · Restripe</title>
      <h1>Plan</h1>
      {policy === undefined && from !== undefined && to !== undefined ? (
        <GroupPicture ladder="" from={from} to={to} />
      ) : (
        <Shown what="policies" following={policies} height={400}>
          {(state) => {
            const names = [...state.items.keys()].sort();
            const name = policy ?? names[0];
            return name === undefined ? (
              <Empty title="No policy is declared, so nothing is planned" command="restripe plan --from 'rep(3)' --to 'rs(12,2)'">
                Declare one under Policies. What a move would cost without any policy says:
              </Empty>
            ) : (
              <Planned key={name} name={name} names={names} declared={state.items.get(name)} />
            );
          }}
        </Shown>
      )}
    </Stack>
  );
}

function Planned({ name, names, declared }: { name: string; names: string[]; declared: Policy | undefined }) {
  const { from, to } = route.useSearch();
  const navigate = route.useNavigate();
  const plan = usePolicyPlan(name);
  const underWay = useTransitions(true).state;
  // What waits for a person, or moves, is what people come to look at, unless they chose something else.
  const first = [...(underWay?.items.values() ?? [])].filter((one) => one.policy === name).sort((a, b) => Number(b.needsApproval && !b.approved) - Number(a.needsApproval && !a.approved))[0];
  return (
    <>
      <Group align="end">
        <NativeSelect
          size="xs"
          label="Policy"
          value={name}
          data={names.includes(name) ? names : [...names, name]}
          onChange={(event) => void navigate({ search: { policy: event.currentTarget.value } })}
        />
        {plan.phase === "live" && (
          <Text size="sm" c="dimmed">
            Asked anew every 10 s.
          </Text>
        )}
      </Group>
      <Approvals policy={name} />
      <Shown what={`the plan of ${name}`} following={plan} height={360}>
        {(state) => (
          <PolicyPlanned
            plan={state}
            ladder={state.ladder.length > 0 ? state.ladder : (declared?.ladder ?? [])}
            chosen={from === undefined || to === undefined ? first : { from, to }}
            onChoose={(move) => void navigate({ search: { policy: name, from: move.from, to: move.to }, resetScroll: false })}
          />
        )}
      </Shown>
    </>
  );
}

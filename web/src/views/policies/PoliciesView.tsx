import { Button, Group, Stack } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";

import { usePolicies } from "../../data/policies";
import type { Policy } from "../../gen/console/v1/policies_pb";
import { counted, sized } from "../../pictures/amount";
import { SchemeShape } from "../../pictures/SchemeShape";
import { Empty, Shown } from "../../states/States";
import { Beside } from "../../table/Beside";
import { DataTable, type Column } from "../../table/DataTable";
import { money } from "../../words/money";
import { moment, order } from "../../words/time";
import { PolicyDetail } from "./PolicyDetail";
import { PolicyState, stateText } from "./PolicyState";

const route = getRouteApi("/policies");

const bytesOf = ({ rungs }: Policy): bigint => rungs.reduce((sum, { bytes }) => sum + bytes, 0n);

const columns: Column<Policy>[] = [
  { id: "name", header: "Name", width: 140, value: ({ name }) => name },
  { id: "state", header: "State", width: 150, value: stateText, cell: (policy) => <PolicyState policy={policy} /> },
  { id: "class", header: "Class", width: 110, value: (policy) => policy.class },
  { id: "prefixes", header: "Prefixes", width: 150, value: ({ prefixes }) => prefixes.map((prefix) => (prefix === "" ? "everything" : prefix)).join(", ") },
  {
    id: "ladder",
    header: "Ladder",
    width: 370,
    value: ({ ladder }) => ladder.join(" "),
    cell: ({ ladder }) => (
      <Group gap={10} wrap="nowrap">
        {ladder.map((scheme) => (
          <SchemeShape key={scheme} scheme={scheme} />
        ))}
      </Group>
    ),
  },
  { id: "bytes", header: "Protected", width: 100, numeric: true, value: bytesOf, cell: (policy) => sized(bytesOf(policy)) },
  { id: "saved", header: "Saved", width: 100, numeric: true, value: ({ savedBytes }) => savedBytes, cell: ({ savedBytes }) => sized(savedBytes) },
  { id: "month", header: "Saved a month", width: 120, numeric: true, value: ({ savedPerMonth }) => savedPerMonth, cell: ({ savedPerMonth }) => money(savedPerMonth) },
  { id: "moving", header: "Not ended", width: 130, value: ({ activeTransitions }) => activeTransitions, cell: ({ activeTransitions }) => (activeTransitions === 0 ? "nothing" : counted(activeTransitions, "transition")) },
  { id: "approval", header: "Approval", width: 110, hidden: true, value: ({ approval }) => approval },
  { id: "backend", header: "Backend", width: 100, hidden: true, value: ({ backend }) => backend },
  { id: "window", header: "Next window", width: 170, hidden: true, value: ({ nextWindow }) => order(nextWindow), cell: ({ nextWindow }) => moment(nextWindow) },
];

/** PoliciesView is what is declared; one policy opens beside the list. */
export function PoliciesView() {
  const { name } = route.useSearch();
  const navigate = route.useNavigate();
  const policies = usePolicies();
  const rows = useMemo(() => [...(policies.state?.items.values() ?? [])].sort((a, b) => a.name.localeCompare(b.name)), [policies.state]);
  const open = (key: string | undefined): void => void navigate({ search: key === undefined ? {} : { name: key } });
  return (
    <Stack gap="sm">
      <title>Policies · Restripe</title>
      <Group justify="space-between">
        <h1>Policies</h1>
        <Button size="xs" onClick={() => void navigate({ to: "/policies/edit" })}>
          Write a policy
        </Button>
      </Group>
      <Beside label={`Policy ${name ?? ""}`} onClose={() => open(undefined)} beside={name === undefined ? undefined : <PolicyDetail key={name} name={name} live={policies.state?.items.get(name)} />}>
        <Shown what="policies" following={policies} height={400}>
          {() => (
            <DataTable
              name="policies"
              label="policies"
              rows={rows}
              columns={columns}
              keyOf={(policy) => policy.name}
              selected={name}
              onSelect={open}
              rowHeight={36}
              empty={
                <Empty title="No policy is declared" command="restripe apply -f policies.yaml">
                  A policy says what a class of objects may be kept as and when it moves. Write one here, or:
                </Empty>
              }
            />
          )}
        </Shown>
      </Beside>
    </Stack>
  );
}

import { SegmentedControl, Stack, Text } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";

import { useTransitions } from "../../data/transitions";
import type { Transition } from "../../gen/console/v1/transitions_pb";
import { rated, sized } from "../../pictures/amount";
import { StateMark } from "../../pictures/StateMark";
import { Beside } from "../../table/Beside";
import { DataTable, type Column } from "../../table/DataTable";
import { Empty, Shown } from "../../states/States";
import { moment, order } from "../../words/time";
import { SchemeStep } from "./SchemeStep";
import { TransitionDetail } from "./TransitionDetail";
import { TransitionProgress } from "./TransitionProgress";

const route = getRouteApi("/transitions");

const columns: Column<Transition>[] = [
  { id: "name", header: "Name", width: 210, value: ({ name }) => name },
  { id: "state", header: "State", width: 150, value: ({ state }) => state, cell: ({ state, stateWhy }) => <StateMark state={state} why={stateWhy} /> },
  { id: "progress", header: "Progress", width: 250, value: shareDone, cell: (transition) => <TransitionProgress transition={transition} /> },
  { id: "class", header: "Class", width: 100, value: (transition) => transition.class },
  { id: "step", header: "From, to", width: 300, value: ({ from, to }) => `${from} ${to}`, cell: ({ from, to }) => <SchemeStep from={from} to={to} /> },
  {
    id: "sent",
    header: "Sent",
    width: 90,
    numeric: true,
    value: ({ progress }) => progress?.measured?.bytesSent ?? 0n,
    cell: ({ progress }) => (progress === undefined ? "" : sized(progress.measured?.bytesSent ?? 0n)),
  },
  { id: "created", header: "Made", width: 170, value: ({ created }) => order(created), cell: ({ created }) => moment(created) },
  { id: "policy", header: "Policy", width: 110, value: ({ policy, byHand }) => (byHand ? "by hand" : policy) },
  { id: "backend", header: "Backend", width: 100, hidden: true, value: ({ backend }) => backend },
  { id: "heat", header: "Groups used", width: 200, hidden: true, value: ({ heat }) => heat },
  { id: "why", header: "Why", width: 300, value: ({ reason }) => reason },
  {
    id: "limit",
    header: "Limit",
    width: 100,
    hidden: true,
    numeric: true,
    value: ({ bytesPerSecondLimit }) => bytesPerSecondLimit,
    cell: ({ bytesPerSecondLimit }) => (bytesPerSecondLimit === 0n ? "none of its own" : rated(bytesPerSecondLimit)),
  },
  { id: "ended", header: "Ended", width: 170, hidden: true, value: ({ ended }) => order(ended), cell: ({ ended }) => moment(ended) },
];

function shareDone({ progress }: Transition): number {
  return progress === undefined || progress.bytesTotal === 0n ? 0 : Number(progress.bytesDone) / Number(progress.bytesTotal);
}

/** TransitionsView is what moves, and why; one of them opens beside the list. */
export function TransitionsView() {
  const { name, policy, show } = route.useSearch();
  const navigate = route.useNavigate();
  const all = show === "all";
  const transitions = useTransitions(!all);
  const rows = useMemo(() => {
    const every = [...(transitions.state?.items.values() ?? [])];
    return every.filter((one) => policy === undefined || one.policy === policy).sort((a, b) => order(b.created) - order(a.created) || a.name.localeCompare(b.name));
  }, [transitions.state, policy]);
  const open = (key: string | undefined): void => void navigate({ search: (before) => ({ ...before, name: key }) });
  return (
    <Stack gap="sm">
      <title>Transitions · Restripe</title>
      <h1>Transitions{policy === undefined ? "" : ` of ${policy}`}</h1>
      <Beside
        label={`Transition ${name ?? ""}`}
        onClose={() => open(undefined)}
        beside={name === undefined ? undefined : <TransitionDetail key={name} name={name} />}
      >
        <Shown what="transitions" following={transitions} height={400}>
          {(state) => (
            <>
              {state.partial && <Text size="sm">More are being read.</Text>}
              <DataTable
                name="transitions"
                label="transitions"
                rows={rows}
                columns={columns}
                keyOf={(transition) => transition.name}
                selected={name}
                onSelect={open}
                rowHeight={48}
                controls={
                  <SegmentedControl
                    size="xs"
                    aria-label="Which transitions"
                    value={all ? "all" : "active"}
                    onChange={(value) => void navigate({ search: (before) => ({ ...before, show: value === "all" ? "all" : undefined }) })}
                    data={[
                      { value: "active", label: "Not ended" },
                      { value: "all", label: "All" },
                    ]}
                  />
                }
                empty={
                  <Empty title={all ? "There has been no transition yet" : "Nothing is moving"} command="restripe transition start --to 'rs(12,2)' --prefix photos/">
                    A policy starts one by itself when objects become colder or hotter than its thresholds. By hand:
                  </Empty>
                }
              />
            </>
          )}
        </Shown>
      </Beside>
    </Stack>
  );
}

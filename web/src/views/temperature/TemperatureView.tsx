import { Box, Group, NativeSelect, SegmentedControl, Stack, Text } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";

import { useHeat, useHistory } from "../../data/heat";
import { usePolicies } from "../../data/policies";
import type { ClassHeat, History } from "../../gen/console/v1/heat_pb";
import { HeatMap } from "../../pictures/HeatMap";
import { heatRowsFromApi } from "../../pictures/heat-map-from-api";
import { Empty, Shown } from "../../states/States";
import { moment } from "../../words/time";
import { Pinning } from "../pins/Pinning";
import { Choice } from "./Choice";
import { Ladder } from "./Ladder";

const route = getRouteApi("/temperature");

const spans = [
  { value: "6", label: "6 hours" },
  { value: "24", label: "1 day" },
  { value: "168", label: "1 week" },
];

/** How many classes the map is of: those with the most bytes. */
const mappedMost = 20;

const keyOf = (one: { backend: string; class: string }): string => `${one.backend}/${one.class}`;

/** TemperatureView is what is hot and what is cold, where each class is on its ladder, and what would move at other thresholds. */
export function TemperatureView() {
  const heat = useHeat();
  return (
    <Stack gap="lg">
      <title>Temperature · Restripe</title>
      <h1>Temperature</h1>
      <OverTime classes={heat.state?.classes ?? []} />
      <Shown what="heat" following={heat} height={360}>
        {(state) =>
          state.classes.length === 0 ? (
            <Empty title="Nothing is known of heat yet" command="restripe put ~/photos photos/">
              Gateways count how often groups are used; a class appears here once it has objects.
            </Empty>
          ) : (
            <OneClass classes={state.classes} />
          )
        }
      </Shown>
    </Stack>
  );
}

function OverTime({ classes }: { classes: readonly ClassHeat[] }) {
  const { hours = "24", backend, class: className } = route.useSearch();
  const navigate = route.useNavigate();
  const history = useHistory({ hours: Number(hours), samples: 200, classes: mappedMost });
  return (
    <section aria-labelledby="over-time">
      <Group justify="space-between">
        <h2 id="over-time">Over time</h2>
        <SegmentedControl size="xs" aria-label="Time shown" value={hours} data={spans} onChange={(value) => void navigate({ search: (before) => ({ ...before, hours: value }), resetScroll: false })} />
      </Group>
      <Shown what="the history" following={history} height={160}>
        {(state) => {
          const chosen = classes.filter((one) => one.backend === backend && one.class === className && !state.classes.some((shown) => keyOf(shown) === keyOf(one)));
          return (
            <>
              <Map history={state} classes={classes} hours={Number(hours)} until={history.heard ?? new Date(0)} />
              {chosen.map((one) => (
                <Chosen key={keyOf(one)} one={one} hours={Number(hours)} />
              ))}
            </>
          );
        }}
      </Shown>
    </section>
  );
}

/** Chosen is the class that was chosen, where others have more bytes. */
function Chosen({ one, hours }: { one: ClassHeat; hours: number }) {
  const history = useHistory({ hours, samples: 200, classes: 1, backend: one.backend, class: one.class });
  return (
    <Shown what="the history" following={history} height={80}>
      {(state) => <Map history={state} classes={[one]} hours={hours} until={history.heard ?? new Date(0)} />}
    </Shown>
  );
}

function Map({ history, classes, hours, until }: { history: History; classes: readonly ClassHeat[]; hours: number; until: Date }) {
  const rows = useMemo(() => heatRowsFromApi(history, classes), [history, classes]);
  const from = useMemo(() => new Date(until.getTime() - hours * 3_600_000), [until, hours]);
  if (rows.every(({ samples }) => samples.length === 0)) {
    return <Text size="sm">The history has no sample of this time yet; one is taken every few minutes.</Text>;
  }
  return (
    <>
      {classes.length > rows.length && <Text size="sm">The {rows.length} classes with the most bytes, of {classes.length}.</Text>}
      <HeatMap rows={rows} from={from} until={until} />
    </>
  );
}

function OneClass({ classes }: { classes: ClassHeat[] }) {
  const { backend, class: className } = route.useSearch();
  const navigate = route.useNavigate();
  const policies = usePolicies().state;
  const chosen = classes.find((one) => one.backend === backend && one.class === className) ?? classes.find(({ policy }) => policy !== "") ?? classes[0];
  if (chosen === undefined) return null;
  const policy = policies?.items.get(chosen.policy);
  return (
    <section aria-labelledby="one-class">
      <h2 id="one-class">Class {chosen.class}</h2>
      <Group align="end">
        <NativeSelect
          size="xs"
          label="Class"
          value={keyOf(chosen)}
          data={classes.map((one) => ({ value: keyOf(one), label: keyOf(one) }))}
          onChange={(event) => {
            const next = classes.find((one) => keyOf(one) === event.currentTarget.value);
            if (next !== undefined) void navigate({ search: (before) => ({ ...before, backend: next.backend, class: next.class }), resetScroll: false });
          }}
        />
        <Text size="sm" c="dimmed">
          As known {moment(chosen.at)}
          {chosen.complete ? "" : ", not yet of every group"}; an access counts half after {short(chosen.halfLife)}, and a group stays under a scheme for {short(chosen.dwell)} at least.
        </Text>
      </Group>
      {policy !== undefined && (
        <Box mt="sm">
          <Pinning key={keyOf(chosen)} policy={policy} />
        </Box>
      )}
      {chosen.choice !== undefined && <Choice choice={chosen.choice} />}
      <Ladder key={`${keyOf(chosen)} ladder`} heat={chosen} policy={policy} />
    </section>
  );
}

/** short is a duration without its parts that are nothing: "24h" for "24h0m0s". */
const short = (duration: string): string => duration.replace(/m0s$/, "m").replace(/h0m$/, "h");

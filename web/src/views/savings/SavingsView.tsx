import { Group, NativeSelect, SegmentedControl, Stack, Text } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";

import { useNewestSamples, useTotalHistory } from "../../data/heat";
import { usePolicies } from "../../data/policies";
import type { ClassHistory, History } from "../../gen/console/v1/heat_pb";
import { RouteLink } from "../../links/RouteLink";
import { TimeSeries } from "../../pictures/TimeSeries";
import { Empty, Shown } from "../../states/States";
import { money } from "../../words/money";
import { moment, order } from "../../words/time";
import { PriceEditor } from "./PriceEditor";
import styles from "./Savings.module.css";

const route = getRouteApi("/savings");

const spans = [
  { value: "24", label: "1 day" },
  { value: "168", label: "1 week" },
  { value: "720", label: "30 days" },
  { value: "4320", label: "6 months" },
];

/** SavingsView is what storing costs a month over time, against everything on its hottest scheme, and the prices behind it. */
export function SavingsView() {
  const { hours = "168" } = route.useSearch();
  const navigate = route.useNavigate();
  const history = useTotalHistory({ hours: Number(hours), samples: 300 });
  return (
    <Stack gap="lg">
      <title>Savings · Restripe</title>
      <h1>Savings</h1>
      <section aria-labelledby="over-time">
        <Group justify="space-between">
          <h2 id="over-time">Cost of a month</h2>
          <SegmentedControl size="xs" aria-label="Time shown" value={hours} data={spans} onChange={(value) => void navigate({ search: (before) => ({ ...before, hours: value }), resetScroll: false })} />
        </Group>
        <Shown what="the history" following={history} height={260}>
          {(state) => <OverTime history={state} />}
        </Shown>
      </section>
      <Classes />
      <Prices />
    </Stack>
  );
}

function OverTime({ history }: { history: History }) {
  const samples = history.classes[0]?.samples ?? [];
  const last = samples.at(-1);
  if (last === undefined) {
    return (
      <Empty title="Nothing is known of this time yet" command="restripe put ~/photos photos/">
        The console takes a sample every few minutes while something is stored.
      </Empty>
    );
  }
  return (
    <Stack gap="sm">
      <Text fw={600}>
        As of {moment(last.at)}: {costLine(last.cost, last.hottestCost)}
      </Text>
      <Text size="sm">Compared with everything on the hottest scheme of its class, at the prices that are declared now. Moving costs once, and is not in it.</Text>
      <TimeSeries
        label="Cost of a month of storage, in the currency of the price tables"
        unit="money"
        series={[
          { label: "with everything on its hottest scheme", points: samples.map(({ at, hottestCost }) => ({ at: new Date(order(at)), value: hottestCost })) },
          { label: "as it is stored", points: samples.map(({ at, cost }) => ({ at: new Date(order(at)), value: cost })) },
        ]}
      />
    </Stack>
  );
}

/** How many classes the table has: those with the most bytes. */
const shownMost = 20;

function Classes() {
  const newest = useNewestSamples(shownMost);
  return (
    <section aria-labelledby="classes">
      <h2 id="classes">By class</h2>
      <Shown what="the classes" following={newest} height={160}>
        {(state) => (state.classes.length === 0 ? <Text size="sm">No class has a sample yet.</Text> : <ClassTable classes={state.classes} />)}
      </Shown>
    </section>
  );
}

function ClassTable({ classes }: { classes: ClassHistory[] }) {
  return (
    <>
      {classes.length === shownMost && <Text size="sm">The {shownMost} classes with the most bytes.</Text>}
      {/* What scrolls must be reached by the keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className={styles.scroll} role="group" aria-label="Cost of each class" tabIndex={0}>
        <table className={styles.classes}>
          <thead>
            <tr>
              <th scope="col">Class</th>
              <th scope="col">Costs a month</th>
              <th scope="col">Saves a month</th>
              <th scope="col">Compared with all of it on</th>
              <th scope="col">Price of a GiB a month</th>
              <th scope="col">As of</th>
            </tr>
          </thead>
          <tbody>
            {classes.map((one) => {
              const { cost, hottestCost, at } = one.samples.at(-1) ?? { cost: 0, hottestCost: 0, at: undefined };
              return (
                <tr key={`${one.backend}/${one.class}`}>
                  <th scope="row">
                    {one.policy === "" ? (
                      one.class
                    ) : (
                      <RouteLink to="/savings" search={{ policy: one.policy }}>
                        {one.class}
                      </RouteLink>
                    )}
                  </th>
                  <td>{money(cost)}</td>
                  <td>{money(hottestCost - cost)}</td>
                  <td>{one.hottest === "" ? "not known" : `${one.hottest}: ${money(hottestCost)}`}</td>
                  <td>{money(one.prices?.storageGibMonth ?? 0)}</td>
                  <td>{moment(at)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** costLine is what a month costs beside what it would. */
export function costLine(now: number, hot: number): string {
  const start = `a month of what is stored costs ${money(now)}`;
  if (hot === now) return `${start}, as it would with everything on its hottest scheme.`;
  return `${start}, ${money(Math.abs(hot - now))} ${hot > now ? "less" : "more"} than the ${money(hot)} of keeping everything on its hottest scheme.`;
}

function Prices() {
  const { policy } = route.useSearch();
  const navigate = route.useNavigate();
  const policies = usePolicies();
  return (
    <section aria-labelledby="prices">
      <h2 id="prices">Prices</h2>
      <Shown what="policies" following={policies} height={200}>
        {(state) => {
          const names = [...state.items.keys()].sort();
          const chosen = state.items.get(policy ?? names[0] ?? "");
          if (names.length === 0) {
            return (
              <Empty title="No policy is declared" command="restripe apply -f policy.yaml">
                Prices are those of a policy; what has none is counted at the built-in ones.
              </Empty>
            );
          }
          return (
            <Stack gap="sm">
              <NativeSelect
                size="xs"
                w={260}
                label="Policy"
                value={chosen?.name ?? ""}
                data={chosen === undefined ? [{ value: "", label: `there is no policy ${policy ?? ""}` }, ...names] : names}
                onChange={(event) => {
                  const name = event.currentTarget.value;
                  void navigate({ search: (before) => ({ ...before, policy: name }), resetScroll: false });
                }}
              />
              {chosen !== undefined && <PriceEditor key={chosen.name} policy={chosen} />}
            </Stack>
          );
        }}
      </Shown>
    </section>
  );
}

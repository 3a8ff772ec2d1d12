import { Group, SegmentedControl, Text } from "@mantine/core";
import { useState } from "react";

import { useTotalHistory } from "../../data/heat";
import { TimeSeries } from "../../pictures/TimeSeries";
import { RouteLink } from "../../links/RouteLink";
import { Shown } from "../../states/States";
import styles from "./Overview.module.css";
import { savedOverTime } from "./saved-over-time";

const spans = [
  { value: "1", label: "1 hour" },
  { value: "24", label: "1 day" },
  { value: "168", label: "1 week" },
  { value: "720", label: "30 days" },
];

/** Saved is what was stored over time, beside what it would have been with everything kept hot. */
export function Saved() {
  const [hours, setHours] = useState("24");
  const history = useTotalHistory({ hours: Number(hours), samples: 200 });
  return (
    <section aria-labelledby="saved" className={styles.chart}>
      <Group justify="space-between">
        <h2 id="saved">Saved over time</h2>
        <SegmentedControl size="xs" aria-label="Time shown" value={hours} onChange={setHours} data={spans} />
      </Group>
      <Shown what="the history" following={history} height={220}>
        {(state) => {
          const saved = savedOverTime(state);
          if (saved.times.length < 2) {
            return <Text size="sm">The history has {saved.times.length === 0 ? "no sample" : "one sample"} of this time yet; one is taken every few minutes.</Text>;
          }
          return (
            <>
              {state.error !== "" && <Text size="sm">The history is not kept on disk: {state.error}</Text>}
              <RouteLink to="/savings" size="sm">
                In money, and the prices
              </RouteLink>
              <TimeSeries
                label="Bytes stored over time"
                unit="bytes"
                series={[
                  { label: "with everything on its first rung", points: pointsOf(saved.times, saved.hot) },
                  { label: "stored", points: pointsOf(saved.times, saved.stored) },
                  { label: "protected", points: pointsOf(saved.times, saved.bytes) },
                ]}
              />
            </>
          );
        }}
      </Shown>
    </section>
  );
}

function pointsOf(times: number[], values: number[]) {
  return times.map((seconds, i) => ({ at: new Date(seconds * 1_000), value: values[i] ?? 0 }));
}

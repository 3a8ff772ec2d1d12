import { Group, SimpleGrid, Stack } from "@mantine/core";

import { useOverview } from "../../data/overview";
import { Shown } from "../../states/States";
import { Classes } from "./Classes";
import { Cost } from "./Cost";
import { Health } from "./Health";
import { Moving } from "./Moving";
import { SafetyLine } from "./SafetyLine";
import { Saved } from "./Saved";
import { FirstSteps } from "./FirstSteps";
import { Safety } from "../../gen/console/v1/overview_pb";

/** OverviewView answers at one glance whether data is safe, what it costs and what moves. */
export function OverviewView() {
  const overview = useOverview();
  return (
    <Stack gap="lg">
      <title>Overview · Restripe</title>
      <Shown what="the overview" following={{ ...overview, problem: overview.state === undefined ? overview.problem : undefined }} height={420}>
        {(state) => (
          <>
            <SafetyLine overview={state} />
            {state.safety === Safety.EMPTY && <FirstSteps />}
            <Cost overview={state} />
            <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
              <Moving overview={state} />
              <Health overview={state} />
            </SimpleGrid>
            <Classes classes={state.classes} total={state.classesTotal} />
            <Group grow>
              <Saved />
            </Group>
          </>
        )}
      </Shown>
    </Stack>
  );
}

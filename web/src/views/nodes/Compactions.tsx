import { Group, Stack, Text } from "@mantine/core";

import { ActionButton } from "../../actions/ActionButton";
import { Outcome } from "../../actions/Outcome";
import { useCompactions, useCompactionSteering } from "../../data/compactions";
import type { Compaction, DeadSpace } from "../../gen/console/v1/compaction_pb";
import { counted, sized, sizedOf } from "../../pictures/amount";
import { ProgressBar } from "../../pictures/ProgressBar";
import { Shown } from "../../states/States";
import { moment } from "../../words/time";
import styles from "./Nodes.module.css";

/** Compactions is how much deleted and overwritten small objects leave behind, and how far giving it back is. */
export function Compactions() {
  const compactions = useCompactions();
  return (
    <section aria-labelledby="compactions">
      <h2 id="compactions">Dead space of small objects</h2>
      <Shown what="compactions" following={compactions} height={120}>
        {(state) => (
          <Stack gap="md">
            {state.compactions.map((one) => (
              <OfBackend key={one.backend} compaction={one} />
            ))}
            {state.compactions.length === 0 && <Text size="sm">No gateway tells of a compaction.</Text>}
          </Stack>
        )}
      </Shown>
    </section>
  );
}

function OfBackend({ compaction: one }: { compaction: Compaction }) {
  const steering = useCompactionSteering();
  const of = { backend: one.backend };
  const unfinished = one.pass > 0n && one.finished === undefined;
  return (
    <Stack gap="xs">
      <Text size="sm">
        {one.backend}: {one.state}
        {one.pass === 0n ? ". Nothing was compacted yet." : <Done compaction={one} />}
      </Text>
      {one.error !== "" && <Text size="sm">{one.error}</Text>}
      {unfinished && (
        <ProgressBar
          label={`Compaction of ${one.backend}`}
          done={one.bytesDone}
          total={one.bytesTotal}
          secondsLeft={one.etaSeconds}
          paused={one.state === "paused" ? "" : undefined}
          counting={one.groupsTotal === 0n}
        />
      )}
      {one.looked !== undefined && (
        <ul className={styles.findings}>
          {one.classes.map((dead) => (
            <Dead key={dead.class} dead={dead} />
          ))}
          {one.classes.length === 0 && <li>No class has groups of small objects.</li>}
        </ul>
      )}
      <Group gap="xs">
        {one.state === "paused" ? (
          <ActionButton verb="pause" variant="filled" loading={steering.resume.running} onClick={() => steering.resume.run(of)}>
            Resume compaction
          </ActionButton>
        ) : (
          <ActionButton verb="pause" loading={steering.pause.running} onClick={() => steering.pause.run(of)}>
            Pause compaction
          </ActionButton>
        )}
        <ActionButton verb="apply" loading={steering.start.running} onClick={() => steering.start.run(of)}>
          Compact now
        </ActionButton>
      </Group>
      <Outcome actions={Object.values(steering)} />
    </Stack>
  );
}

/** Done is what became of a pass so far. */
function Done({ compaction: one }: { compaction: Compaction }) {
  return (
    <>
      {one.finished !== undefined && `, ended ${moment(one.finished)}`}; {counted(one.objectsMoved, "object")} moved{one.objectsSpliced > 0n && `, ${one.objectsSpliced.toLocaleString("en")} of them on their nodes,`} out of {one.groupsDone.toLocaleString("en")} of {counted(one.groupsTotal, "group")}, {sized(one.bytesFreed)} freed
      {one.failed > 0n && `; ${counted(one.failed, "group")} could not be compacted`}.
    </>
  );
}

/** never is the percentage from which on nothing is compacted. */
const never = 1000;

function Dead({ dead }: { dead: DeadSpace }) {
  const live = dead.bytes - dead.deadBytes;
  const share = live > 0n ? ` (${Math.floor((Number(dead.deadBytes) / Number(live)) * 100)} % of what lives)` : "";
  return (
    <li>
      <strong>{dead.class}</strong>: {sizedOf(dead.deadBytes, dead.bytes)} dead{share} in {counted(dead.groups, "group")}; {boundOf(dead.deadAtMostPercent)}
    </li>
  );
}

/** boundOf is how much of a class may be dead, in words; 0 is of a class that is gone. */
function boundOf(percent: number): string {
  if (percent === 0) return "there is no such class any more";
  return percent >= never ? "it is never compacted" : `at most ${percent} % may be`;
}

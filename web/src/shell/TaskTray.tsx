import { UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";

import { useCompactions } from "../data/compactions";
import { useNodes, useScrubs } from "../data/nodes";
import type { Overview } from "../gen/console/v1/overview_pb";
import { counted } from "../pictures/amount";
import { ProgressBar } from "../pictures/ProgressBar";
import { slotsGone, slotsMoved } from "../views/nodes/drain";
import { TransitionProgress } from "../views/transitions/TransitionProgress";
import styles from "./TaskTray.module.css";

/** TaskTray has every job that runs anywhere. */
export function TaskTray({ overview }: { overview: Overview | undefined }) {
  const [open, { toggle }] = useDisclosure(false);
  if (overview === undefined) return null;
  return (
    <section className={styles.tray} aria-label="Running jobs">
      <UnstyledButton className={styles.summary} onClick={toggle} aria-expanded={open} aria-controls="jobs">
        <span aria-hidden>{open ? "▾" : "▸"}</span> {summaryOf(overview)}
      </UnstyledButton>
      <div id="jobs" hidden={!open}>
        {open && <Jobs overview={overview} />}
      </div>
    </section>
  );
}

function repairing(overview: Overview) {
  return overview.backends.filter(({ repair }) => repair !== undefined && repair.groupsTotal > repair.groupsDone);
}

function summaryOf(overview: Overview): string {
  const draining = overview.nodes?.byState.draining ?? 0;
  const repairs = repairing(overview).length;
  const parts = [
    overview.movingTotal > 0n && counted(overview.movingTotal, "transition"),
    repairs > 0 && counted(repairs, "repair"),
    draining > 0 && `${counted(draining, "node")} being emptied`,
  ].filter((part) => part !== false);
  return parts.length === 0 ? "Jobs: no transition, repair or drain is running" : `Jobs: ${parts.join(", ")}`;
}

function Jobs({ overview }: { overview: Overview }) {
  const nodes = useNodes().state;
  const scrubs = useScrubs().state?.scrubs.filter(({ state }) => state === "running") ?? [];
  const compactions = useCompactions().state?.compactions.filter(({ state, groupsTotal }) => state === "running" && groupsTotal > 0n) ?? [];
  const draining = [...(nodes?.items.values() ?? [])].filter((node) => node.drain !== undefined && node.drain.slotsLeft !== 0n);
  const more = overview.movingTotal - BigInt(overview.moving.length);
  return (
    <ul className={styles.jobs}>
      {overview.moving.map((transition) => (
        <li key={transition.name}>
          <Link to="/transitions" search={{ name: transition.name }}>
            {transition.name}
          </Link>
          <TransitionProgress transition={transition} />
        </li>
      ))}
      {more > 0n && (
        <li>
          <Link to="/transitions">and {counted(more, "more transition")}</Link>
        </li>
      )}
      {repairing(overview).map(({ backend, repair }) => (
        <li key={`repair ${backend}`}>
          <Link to="/nodes">Repair of {backend}</Link>
          {repair !== undefined && (
            <ProgressBar label={`Repair of ${backend}`} done={repair.bytesDone} total={repair.bytesTotal} secondsLeft={repair.etaSeconds} />
          )}
        </li>
      ))}
      {draining.map(
        (node) =>
          node.drain !== undefined && (
            <li key={`drain ${node.backend}/${node.name}`}>
              <Link to="/nodes" search={{ name: `${node.backend}/${node.name}` }}>
                Emptying {node.name}
              </Link>
              <ProgressBar
                label={`Emptying of ${node.name}`}
                done={slotsGone(node.drain)}
                total={node.drain.slotsTotal}
                amount={slotsMoved}
                secondsLeft={node.drain.etaSeconds}
                paused={node.drain.paused ? "" : undefined}
              />
            </li>
          ),
      )}
      {scrubs.map((scrub) => (
        <li key={`scrub ${scrub.backend}`}>
          <Link to="/nodes">Scrub of {scrub.backend}</Link>
          <ProgressBar label={`Scrub of ${scrub.backend}`} done={scrub.bytesDone} total={scrub.bytesTotal} secondsLeft={scrub.etaSeconds} />
        </li>
      ))}
      {compactions.map((one) => (
        <li key={`compaction ${one.backend}`}>
          <Link to="/nodes">Compaction of {one.backend}</Link>
          <ProgressBar label={`Compaction of ${one.backend}`} done={one.bytesDone} total={one.bytesTotal} secondsLeft={one.etaSeconds} />
        </li>
      ))}
    </ul>
  );
}

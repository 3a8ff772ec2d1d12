import { Text } from "@mantine/core";

import { useScrubs } from "../../data/nodes";
import type { Scrub, ScrubFinding } from "../../gen/console/v1/nodes_pb";
import { counted } from "../../pictures/amount";
import { ProgressBar } from "../../pictures/ProgressBar";
import { Shown } from "../../states/States";
import { moment } from "../../words/time";
import styles from "./Nodes.module.css";

/** Scrubs is how far the audits of all blocks are, and what they found wrong. */
export function Scrubs() {
  const scrubs = useScrubs();
  return (
    <section aria-labelledby="scrubs">
      <h2 id="scrubs">Scrubs</h2>
      <Shown what="scrubs" following={scrubs} height={120}>
        {(state) => (
          <>
            {state.scrubs.map((scrub) => (
              <Progress key={scrub.backend} scrub={scrub} />
            ))}
            {state.scrubs.length === 0 && <Text size="sm">No scrub was begun yet. `restripe scrub start` begins one.</Text>}
            {state.scrubs.length > 0 && state.findings.length === 0 && <Text size="sm">No scrub found anything wrong in what it read.</Text>}
            <ul className={styles.findings}>
              {state.findings.map((finding) => (
                <Finding key={`${finding.backend} ${finding.group} ${finding.slot} ${moment(finding.found)} ${finding.kind}`} finding={finding} />
              ))}
            </ul>
          </>
        )}
      </Shown>
    </section>
  );
}

function Progress({ scrub }: { scrub: Scrub }) {
  const done = scrub.finished !== undefined;
  return (
    <div>
      <Text size="sm">
        {scrub.backend}: {scrub.state}
        {done ? `, ended ${moment(scrub.finished)}` : ""}; {counted(scrub.groupsDone, "group")} of {counted(scrub.groupsTotal, "group")} audited, {counted(scrub.findings, "finding")},{" "}
        {scrub.repaired.toLocaleString()} of them repaired.
      </Text>
      {scrub.error !== "" && <Text size="sm">{scrub.error}</Text>}
      {!done && scrub.state !== "idle" && <ProgressBar label={`Scrub of ${scrub.backend}`} done={scrub.bytesDone} total={scrub.bytesTotal} secondsLeft={scrub.etaSeconds} paused={scrub.state === "paused" ? "" : undefined} />}
    </div>
  );
}

function Finding({ finding }: { finding: ScrubFinding }) {
  const more = finding.moreObjects > 0 ? ` and ${counted(finding.moreObjects, "more object")}` : "";
  return (
    <li>
      <strong>{finding.kind}</strong>
      {finding.node !== "" && ` on ${finding.node}`}, group {finding.group}, {moment(finding.found)}
      <Text size="sm">{finding.text}</Text>
      {finding.objects.length > 0 && (
        <Text size="sm">
          Objects: {finding.objects.join(", ")}
          {more}
        </Text>
      )}
      <Text size="sm">{finding.repaired ? `Repaired. ${finding.outcome}` : `Not repaired. ${finding.outcome}`}</Text>
    </li>
  );
}

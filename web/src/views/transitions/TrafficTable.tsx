import { Text } from "@mantine/core";

import type { Transition } from "../../gen/console/v1/transitions_pb";
import { counted, sized } from "../../pictures/amount";
import styles from "./Transitions.module.css";

const kinds = [
  { text: "Sent over the network", field: "bytesSent" },
  { text: "Read from stores", field: "bytesRead" },
  { text: "Written to stores", field: "bytesWritten" },
] as const;

/** TrafficTable is what was predicted beside what was measured. */
export function TrafficTable({ transition }: { transition: Transition }) {
  const { cost, progress } = transition;
  if (cost === undefined && progress === undefined) return <Text size="sm">It is not planned yet, so its cost is not known.</Text>;
  return (
    <section>
      <h3>Bytes</h3>
      <table className={styles.traffic}>
        <thead>
          <tr>
            <td />
            {cost?.traffic !== undefined && <th scope="col">Planned, all of it</th>}
            {progress !== undefined && <th scope="col">Predicted so far</th>}
            {progress !== undefined && <th scope="col">Measured so far</th>}
          </tr>
        </thead>
        <tbody>
          {kinds.map(({ text, field }) => (
            <tr key={field}>
              <th scope="row">{text}</th>
              {cost?.traffic !== undefined && <td>{sized(cost.traffic[field])}</td>}
              {progress !== undefined && <td>{told(progress.predicted?.[field], progress.predicted?.bytesRead, field)}</td>}
              {progress !== undefined && <td>{told(progress.measured?.[field], progress.measured?.bytesRead, field)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
      {progress !== undefined && (
        <Text size="xs" c="dimmed">
          So far: {counted(progress.groupsDone, "group")} of {counted(progress.groupsTotal, "group")}
          {progress.groupsSkipped > 0n && `, ${counted(progress.groupsSkipped, "group")} skipped`}
          {progress.groupsOffLadder > 0n && `, ${counted(progress.groupsOffLadder, "group")} written for another ladder`}
          {progress.groupsReshaped > 0n && `, ${counted(progress.groupsReshaped, "group")} by columns of others`}.
          {cost !== undefined && ` At most ${sized(cost.peakBytes)} of extra space at once.`}
        </Text>
      )}
    </section>
  );
}

// Once a transition has ended only what was sent is remembered: a group cannot be moved without reading, so where nothing
// was read it is not known.
function told(bytes: bigint | undefined, read: bigint | undefined, field: string): string {
  if (bytes === undefined) return "not known";
  return field !== "bytesSent" && read === 0n ? "not kept" : sized(bytes);
}

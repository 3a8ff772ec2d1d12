import type { Node } from "../../gen/console/v1/nodes_pb";
import { sized, sizedOf } from "../../pictures/amount";
import styles from "./Nodes.module.css";

/** Capacity is how full a node is. */
export function Capacity({ node }: { node: Node }) {
  const { usedBytes, capacityBytes, name } = node;
  if (capacityBytes === 0n) return <>{sized(usedBytes)}, of how much is not known</>;
  const text = sizedOf(usedBytes, capacityBytes);
  return (
    <>
      <span className={styles.meter} role="meter" aria-label={`Used of ${name}`} aria-valuemin={0} aria-valuemax={Number(capacityBytes)} aria-valuenow={Number(usedBytes)} aria-valuetext={text}>
        <span style={{ width: `${Math.min(100, (100 * Number(usedBytes)) / Number(capacityBytes))}%` }} />
      </span>
      {text}
    </>
  );
}

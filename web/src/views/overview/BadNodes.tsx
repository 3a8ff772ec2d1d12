import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Text } from "@mantine/core";

import type { Node } from "../../gen/console/v1/nodes_pb";
import type { NodeCounts } from "../../gen/console/v1/overview_pb";
import { RouteLink } from "../../links/RouteLink";
import { StateMark } from "../../pictures/StateMark";
import { badStates } from "../../words/node-state";
import styles from "./Overview.module.css";

/** BadNodes names the nodes that do not serve, since when, and what becomes of them by itself. */
export function BadNodes({ nodes }: { nodes: NodeCounts }) {
  const all = badStates.reduce((sum, state) => sum + (nodes.byState[state] ?? 0), 0);
  if (all === 0) return null;
  return (
    <ul className={styles.bad} aria-label="Nodes that do not serve">
      {nodes.bad.map((node) => (
        <li key={`${node.backend}/${node.name}`}>
          <StateMark state={node.state} />{" "}
          <Text span size="sm">
            <RouteLink to="/nodes" search={{ name: `${node.backend}/${node.name}` }}>
              {node.name}
            </RouteLink>
            {told(node)}
          </Text>
        </li>
      ))}
      {all > nodes.bad.length && <li>and {all - nodes.bad.length} more</li>}
    </ul>
  );
}

function told({ since, givenUpAt }: Node): string {
  const from = since === undefined ? "" : ` since ${timestampDate(since).toLocaleTimeString()}`;
  if (givenUpAt === undefined) return from;
  return `${from}; if it stays silent it is given up at ${timestampDate(givenUpAt).toLocaleTimeString()}, and its blocks are rebuilt on other nodes`;
}

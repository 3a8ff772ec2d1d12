import { Text } from "@mantine/core";

import { nodeKey, useNodes } from "../../data/nodes";
import type { Node } from "../../gen/console/v1/nodes_pb";
import { RouteLink } from "../../links/RouteLink";
import { counted, rated } from "../../pictures/amount";
import { Shown } from "../../states/States";
import { workOf } from "../nodes/work";
import styles from "./Transitions.module.css";

const most = 8;

/** NodesNow is what the nodes of a backend do at present, the busiest first. */
export function NodesNow({ backend }: { backend: string }) {
  const nodes = useNodes();
  return (
    <section>
      <h3>The nodes now</h3>
      <Shown what={`nodes of ${backend}`} following={nodes} height={160}>
        {({ items }) => <Busiest nodes={[...items.values()].filter((node) => node.backend === backend)} />}
      </Shown>
    </section>
  );
}

function Busiest({ nodes }: { nodes: Node[] }) {
  const busy = nodes.filter((node) => workOf(node) > 0n).sort((a, b) => Number(workOf(b) - workOf(a)) || a.name.localeCompare(b.name));
  const rest = nodes.length - Math.min(busy.length, most);
  return (
    <>
      {busy.length > 0 && (
        <table className={styles.traffic}>
          <thead>
            <tr>
              <td />
              <th scope="col">Reads</th>
              <th scope="col">Sends</th>
              <th scope="col">Writes</th>
            </tr>
          </thead>
          <tbody>
            {busy.slice(0, most).map((node) => (
              <tr key={node.name}>
                <th scope="row">
                  <RouteLink to="/nodes" search={{ name: nodeKey(node) }}>
                    {node.name}
                  </RouteLink>
                </th>
                <td>{rated(node.rates?.read ?? 0n)}</td>
                <td>{rated(node.rates?.sent ?? 0n)}</td>
                <td>{rated(node.rates?.written ?? 0n)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Text size="xs" c="dimmed">
        {busy.length === 0 && `None of ${counted(nodes.length, "node")} reads, sends or writes anything.`}
        {busy.length > 0 && "All their work, for clients and repairs too; sent is to other nodes."}
        {busy.length > 0 && rest > 0 && ` Less busy: ${counted(rest, "node")}.`}
      </Text>
    </>
  );
}

import type { Node } from "../../gen/console/v1/nodes_pb";
import { StateMark } from "../../pictures/StateMark";
import { nodeKey } from "../../data/nodes";
import styles from "./Nodes.module.css";

/** Domains is which nodes fail together. */
export function Domains({ nodes }: { nodes: Node[] }) {
  const domains = new Map<string, Node[]>();
  for (const node of nodes) {
    const domain = node.failureDomain === "" ? node.name : node.failureDomain;
    domains.set(domain, [...(domains.get(domain) ?? []), node]);
  }
  if (domains.size === nodes.length) return null; // every node fails alone, as the table shows
  return (
    <section aria-labelledby="domains">
      <h2 id="domains">Failure domains</h2>
      <ul className={styles.domains}>
        {[...domains].map(([domain, within]) => (
          <li key={domain} className={styles.domain}>
            <h3>{domain}</h3>
            <ul>
              {within.map((node) => (
                <li key={nodeKey(node)}>
                  <StateMark state={node.state} word={`${node.name}: ${node.state}`} />
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </section>
  );
}

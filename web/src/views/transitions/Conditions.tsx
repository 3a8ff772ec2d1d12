import { Text } from "@mantine/core";

import type { Condition } from "../../gen/console/v1/about_pb";
import { moment } from "../../words/time";
import styles from "./Transitions.module.css";

/** Conditions is what the operator says of an object, in its own words. */
export function Conditions({ conditions }: { conditions: Condition[] }) {
  if (conditions.length === 0) return null;
  return (
    <section>
      <h3>Conditions</h3>
      <ul className={styles.conditions}>
        {conditions.map((condition) => (
          <li key={condition.type}>
            <strong>{condition.type}</strong> {condition.status}, {condition.reason}
            <Text size="sm">{condition.message}</Text>
            <Text size="xs" c="dimmed">
              since {moment(condition.since)}
            </Text>
          </li>
        ))}
      </ul>
    </section>
  );
}

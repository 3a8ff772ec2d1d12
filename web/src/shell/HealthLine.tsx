import { Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";

import type { Following } from "../data/console";
import type { Overview } from "../gen/console/v1/overview_pb";
import { StateMark } from "../pictures/StateMark";
import { safetyWord } from "../words/safety";
import styles from "./Shell.module.css";

/** HealthLine answers on every page whether data is safe. */
export function HealthLine({ overview }: { overview: Following<Overview> }) {
  const { state, phase } = overview;
  return (
    <div className={styles.health} role="status" aria-label="Is my data safe?">
      {state === undefined ? (
        <StateMark state="Unknown" />
      ) : (
        <>
          <StateMark state={safetyWord(state.safety)} />
          <Text component={Link} to="/" size="sm" className={styles.healthText} title={state.safetyLine}>
            {state.safetyLine}
            {phase === "broken" && " (as last heard)"}
          </Text>
        </>
      )}
    </div>
  );
}

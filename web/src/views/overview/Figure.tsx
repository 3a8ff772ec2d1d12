import { Text } from "@mantine/core";
import type { ReactNode } from "react";

import styles from "./Overview.module.css";

/** Figure is one number with what it counts and why it is so. */
export function Figure({ label, value, reason }: { label: string; value: ReactNode; reason: ReactNode }) {
  return (
    <div className={styles.figure}>
      <dt>{label}</dt>
      <dd>
        <span className={styles.value}>{value}</span>
        <Text size="sm" c="dimmed">
          {reason}
        </Text>
      </dd>
    </div>
  );
}

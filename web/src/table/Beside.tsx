import { CloseButton, Group } from "@mantine/core";
import type { ReactNode } from "react";

import styles from "./Beside.module.css";

interface BesideProps {
  children: ReactNode;
  /** What is open beside the list; absent: nothing. */
  beside: ReactNode | undefined;
  label: string;
  onClose: () => void;
}

/** Beside opens what is selected in a list beside the list, not over it; on narrow pages, below it. */
export function Beside({ children, beside, label, onClose }: BesideProps) {
  return (
    <div className={styles.split} data-open={beside !== undefined}>
      <div className={styles.list}>{children}</div>
      {beside !== undefined && (
        <aside className={styles.beside} aria-label={label}>
          <Group justify="flex-end" className={styles.close}>
            <CloseButton aria-label={`Close ${label}`} onClick={onClose} />
          </Group>
          {beside}
        </aside>
      )}
    </div>
  );
}

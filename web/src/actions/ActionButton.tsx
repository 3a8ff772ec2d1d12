import { Button, type ButtonProps } from "@mantine/core";
import { useId } from "react";

import { useMay, type Verb } from "../data/about";
import styles from "./actions.module.css";

interface ActionButtonProps extends ButtonProps {
  verb: Verb;
  onClick: () => void;
  /** Why it makes no sense now; empty: it does. */
  unless?: string;
  children: string;
}

/** ActionButton does something, and says why where it cannot: which verb is missing, or what stands in the way. */
export function ActionButton({ verb, onClick, unless = "", children, ...rest }: ActionButtonProps) {
  const id = useId();
  const may = useMay(verb);
  const why = may === false ? `You lack the verb ${verb}.` : unless;
  const barred = why !== "" || may === undefined;
  return (
    <span className={styles.action}>
      <Button size="xs" variant="default" {...rest} aria-disabled={barred} data-disabled={barred || undefined} aria-describedby={why === "" ? undefined : id} title={why} onClick={() => barred || onClick()}>
        {children}
      </Button>
      {why !== "" && (
        <span id={id} hidden>
          {why}
        </span>
      )}
    </span>
  );
}

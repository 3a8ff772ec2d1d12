import type { Finding } from "../../gen/console/v1/policies_pb";
import { Text } from "@mantine/core";
import { StateMark } from "../../pictures/StateMark";
import styles from "./Policies.module.css";

/** Findings is what is wrong with a text, and where. */
export function Findings({ findings, known }: { findings: Finding[]; known: boolean }) {
  return (
    <div aria-live="polite">
      {findings.length === 0 && known && <Text size="sm">No mistake was found.</Text>}
      <ul className={styles.findings}>
        {findings.map((finding) => (
          <li key={`${finding.file}:${finding.line}:${finding.column} ${finding.message}`}>
            <StateMark state={finding.severity === "error" ? "Failed" : "Reduced"} word={finding.severity} />{" "}
            <span className={styles.place}>
              {finding.line > 0 && `line ${finding.line}, column ${finding.column}: `}
              {finding.path}
            </span>
            <Text size="sm">{finding.message}</Text>
          </li>
        ))}
      </ul>
    </div>
  );
}

import { Text } from "@mantine/core";

import type { ObjectDifference } from "../../gen/console/v1/policies_pb";
import styles from "./Policies.module.css";

/** Differences is what applying a text would change, field by field. */
export function Differences({ differences }: { differences: ObjectDifference[] }) {
  if (differences.length === 0) return <Text size="sm">Nothing: what is declared is what the text says.</Text>;
  return (
    <>
      {differences.map((difference) => (
        <div key={difference.object}>
          <h3>
            {difference.object}: {difference.change}
          </h3>
          {/* What scrolls must be reached by the keyboard. */}
          {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
          <div className={styles.scroll} role="region" aria-label={`Fields of ${difference.object}`} tabIndex={0}>
            <table className={styles.differences}>
              <thead>
                <tr>
                  <th scope="col">Field</th>
                  <th scope="col">Now</th>
                  <th scope="col">Then</th>
                </tr>
              </thead>
              <tbody>
                {difference.fields.map((field) => (
                  <tr key={field.path}>
                    <th scope="row">{field.path}</th>
                    <td>{field.before === "" ? "not there" : <del>{field.before}</del>}</td>
                    <td>{field.after === "" ? "goes away" : <ins>{field.after}</ins>}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </div>
      ))}
    </>
  );
}

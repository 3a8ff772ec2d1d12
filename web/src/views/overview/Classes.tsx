import { Text } from "@mantine/core";

import type { ClassOverview } from "../../gen/console/v1/overview_pb";
import { heated, overhead, sized, sizedOf } from "../../pictures/amount";
import { SchemeShape } from "../../pictures/SchemeShape";
import styles from "./Overview.module.css";
import { RouteLink } from "../../links/RouteLink";

/** Classes is how hot each class is on each rung of its ladder, and what it takes there. */
export function Classes({ classes, total }: { classes: ClassOverview[]; total: bigint }) {
  const more = total - BigInt(classes.length);
  return (
    <section aria-labelledby="classes">
      <h2 id="classes">Heat by class and scheme</h2>
      {classes.length === 0 ? (
        <Text size="sm">No class of objects is known yet.</Text>
      ) : (
        // What scrolls must be reached by the keyboard.
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <div className={styles.scroll} role="region" aria-label="Table of heat by class and scheme" tabIndex={0}>
          <table className={styles.classes}>
            <thead>
              <tr>
                <th scope="col">Class</th>
                <th scope="col">Scheme</th>
                <th scope="col">Use of a group</th>
                <th scope="col" data-numeric="true">
                  In cells
                </th>
                <th scope="col" data-numeric="true">
                  Stored
                </th>
                <th scope="col" data-numeric="true">
                  Overhead
                </th>
              </tr>
            </thead>
            {classes.map((one) => (
              <ClassRows key={`${one.backend}/${one.class}`} of={one} />
            ))}
          </table>
        </div>
      )}
      {more > 0n && (
        <Text size="sm" mt="xs">
          These store the most. <RouteLink to="/temperature">and {more.toLocaleString("en")} more {more === 1n ? "class" : "classes"}</RouteLink>
        </Text>
      )}
    </section>
  );
}

function ClassRows({ of: one }: { of: ClassOverview }) {
  const rungs = one.rungs.length;
  return (
    <tbody>
      {one.rungs.map((rung, i) => (
        <tr key={rung.scheme}>
          {i === 0 && (
            <th scope="rowgroup" rowSpan={rungs + 1}>
              <RouteLink to="/temperature" search={{ backend: one.backend, class: one.class }}>
                {one.class}
              </RouteLink>
              <Text size="xs" c="dimmed">
                {one.backend}
                {one.policy === "" ? ", no policy" : ""}
              </Text>
            </th>
          )}
          <td>
            <SchemeShape scheme={rung.scheme} />
          </td>
          <td>{rung.meanHeat === undefined ? "no groups" : heated(rung.meanHeat)}</td>
          <td data-numeric="true">{sizedOf(rung.bytes, one.bytes + one.paddingBytes)}</td>
          <td data-numeric="true">{sized(rung.storedBytes)}</td>
          <td data-numeric="true">{rung.bytes === 0n ? "" : overhead(Number(rung.storedBytes) / Number(rung.bytes))}</td>
        </tr>
      ))}
      <tr className={styles.sum}>
        {rungs === 0 && <th scope="rowgroup">{one.class}</th>}
        <td colSpan={2}>{one.savedBytes > 0n ? `saves ${sized(one.savedBytes)} against keeping all of it on its first rung` : "saves nothing yet"}</td>
        <td data-numeric="true">
          {sized(one.bytes)} of users{one.paddingBytes > 0n && <> + {sized(one.paddingBytes)} of padding</>}
        </td>
        <td data-numeric="true">{sized(one.storedBytes)}</td>
        <td data-numeric="true">{one.bytes === 0n ? "" : overhead(one.overhead)}</td>
      </tr>
    </tbody>
  );
}

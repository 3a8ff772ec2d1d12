import { Text } from "@mantine/core";

import type { Comparison } from "../../gen/console/v1/plans_pb";
import { sized } from "../../pictures/amount";
import styles from "./Plan.module.css";
import { wayText } from "./ways";

/** Comparisons is what other ways to make the same move would read and send. */
export function Comparisons({ comparisons, own }: { comparisons: Comparison[]; own?: { bytesRead: bigint; bytesSent: bigint } }) {
  const rows = [
    ...(own === undefined ? [] : [{ way: "restripe", applies: true, ...own }]),
    ...comparisons.filter(({ way }) => own === undefined || way !== "restripe"),
  ];
  const most = rows.reduce((highest, row) => (row.applies && row.bytesSent > highest ? row.bytesSent : highest), 0n);
  return (
    <section>
      <h3>Against other ways</h3>
      <table className={styles.comparisons}>
        <thead>
          <tr>
            <th scope="col">Way</th>
            <th scope="col">Would send</th>
            <th scope="col">Would read</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.way} data-own={row.way === "restripe"}>
              <th scope="row">{wayText(row.way)}</th>
              {row.applies ? (
                <>
                  <td>
                    {sized(row.bytesSent)}
                    <span className={styles.bar} aria-hidden style={{ width: `${most === 0n ? 0 : (100 * Number(row.bytesSent)) / Number(most)}%` }} />
                  </td>
                  <td>{sized(row.bytesRead)}</td>
                </>
              ) : (
                <td colSpan={2}>
                  <Text size="sm" c="dimmed" component="span">
                    cannot make this move
                  </Text>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

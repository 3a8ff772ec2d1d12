import { Text } from "@mantine/core";

import type { PlannedMove } from "../../gen/console/v1/plans_pb";
import { about, sized } from "../../pictures/amount";
import { money } from "../../words/money";
import { Figure } from "../overview/Figure";
import figures from "../overview/Overview.module.css";
import { Comparisons } from "./Comparisons";
import styles from "./Plan.module.css";

/** MoveCost is what a move costs before it is made, next to the other ways. */
export function MoveCost({ move }: { move: PlannedMove }) {
  const { traffic, price, savingPerMonth } = move;
  if (traffic === undefined) return null;
  const freed = move.storedBefore - move.storedAfter;
  return (
    <section aria-labelledby="cost-of-move">
      <h2 id="cost-of-move">
        {move.from} to {move.to}
      </h2>
      <div className={styles.split}>
        <dl className={figures.figures}>
          <Figure label="Sent" value={sized(traffic.bytesSent)} reason={traffic.bytesSent === 0n ? "each parity node adds what it already holds" : "blocks that cross the network"} />
          <Figure label="Read" value={sized(traffic.bytesRead)} reason={`written: ${sized(traffic.bytesWritten)}`} />
          <Figure label="Extra space" value={sized(move.peakBytes)} reason="at most at once, while it moves" />
          <Figure
            label="Time"
            value={move.budgetSeconds === undefined ? "not bounded" : about(move.budgetSeconds)}
            reason={move.budgetSeconds === undefined ? "the policy has no budget of bytes per second" : "under the whole budget of the policy"}
          />
          <Figure
            label="Stored after"
            value={sized(move.storedAfter)}
            reason={freed === 0n ? "as much as before" : freed > 0n ? `${sized(freed)} less than the ${sized(move.storedBefore)} before` : `${sized(-freed)} more than the ${sized(move.storedBefore)} before`}
          />
          <Figure label="Price" value={money(price)} reason={savingPerMonth >= 0 ? `saves ${money(savingPerMonth)} a month, by the price table` : `costs ${money(-savingPerMonth)} more a month, by the price table`} />
        </dl>
        {move.comparisons.length > 0 && <Comparisons comparisons={move.comparisons} own={traffic} />}
      </div>
      {move.explanation !== "" && <Text size="sm">{move.explanation}</Text>}
    </section>
  );
}

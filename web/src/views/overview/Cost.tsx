import type { Overview } from "../../gen/console/v1/overview_pb";
import { overhead, sized, sizedOf } from "../../pictures/amount";
import { money } from "../../words/money";
import { Figure } from "./Figure";
import styles from "./Overview.module.css";

/** Cost is what keeping everything costs, against keeping all of it as if it were hot. */
export function Cost({ overview }: { overview: Overview }) {
  const { protectedBytes, paddingBytes, storedBytes, savedBytes, savedPerMonth } = overview;
  const hot = storedBytes + savedBytes;
  return (
    <section aria-labelledby="cost">
      <h2 id="cost">What it costs</h2>
      <dl className={styles.figures}>
        <Figure label="Protected" value={sized(protectedBytes)} reason={paddingBytes === 0n ? "what users stored" : `what users stored; ${sized(paddingBytes)} more of padding fill up the last cells of objects`} />
        <Figure label="Stored" value={sized(storedBytes)} reason={storedBytes === 0n ? "nothing is stored" : `${overhead(overview.overhead)}: stored bytes of each protected byte`} />
        <Figure label="Saved" value={sized(savedBytes)} reason={`of ${sized(hot)} that keeping everything on its first rung would take`} />
        <Figure
          label="Saved a month"
          value={money(savedPerMonth)}
          reason={savedBytes === 0n ? "nothing is saved yet" : `the price of ${sizedOf(savedBytes, hot)}, by the price table`}
        />
      </dl>
    </section>
  );
}

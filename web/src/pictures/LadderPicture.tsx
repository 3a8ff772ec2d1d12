import { counted, rateNumber, sized } from "./amount";
import { ruleWords, type HeatRule, type LadderRung } from "./ladder";
import { PinMark } from "./PinMark";
import { SchemeShape } from "./SchemeShape";
import "./pictures.css";

export interface LadderPictureProps {
  /** The class or policy it is of. */
  readonly label: string;
  /** Hottest first. */
  readonly rungs: readonly Omit<LadderRung, "buckets">[];
  readonly rules?: readonly HeatRule[];
  /** The bytes that would lie on each rung, by its scheme. */
  readonly then?: ReadonlyMap<string, number>;
  /** The scheme that the class is pinned to, with the pin in words. */
  readonly pinned?: Pinned;
}

export interface Pinned {
  readonly scheme: string;
  readonly words: string;
}

/** The rungs of a ladder, hottest on top, with the bytes on each; before and after where both are known. */
export function LadderPicture({ label, rungs, rules = [], then, pinned }: LadderPictureProps) {
  const whole = rungs.reduce((sum, rung) => sum + rung.bytes, 0);
  const most = Math.max(1, ...rungs.map((rung) => Math.max(rung.bytes, then?.get(rung.scheme) ?? 0)));
  return (
    <ol className="picture-ladder" aria-label={`Ladder of ${label}, hottest first`}>
      {rungs.map((rung) => {
        const rule = rules.find((candidate) => candidate.scheme === rung.scheme);
        const after = then?.get(rung.scheme);
        return (
          <li key={rung.scheme}>
            <span className="picture-rung-head">
              <SchemeShape scheme={rung.scheme} />
              {rule && <span className="picture-quiet">{ruleWords(rule, rateNumber)}</span>}
            </span>
            {pinned?.scheme === rung.scheme && (
              <span className="picture-pinned">
                <PinMark />
                {pinned.words}
              </span>
            )}
            <RungBar part={rung.bytes / most} kind="now" />
            <span className="picture-rung-words">{rungWords(rung, whole)}</span>
            {after !== undefined && (
              <>
                <RungBar part={after / most} kind="then" />
                <span className="picture-rung-words">{thenWords(rung.bytes, after)}</span>
              </>
            )}
          </li>
        );
      })}
    </ol>
  );
}

function RungBar({ part, kind }: { readonly part: number; readonly kind: "now" | "then" }) {
  return (
    <svg aria-hidden="true" className={`picture-rung-bar picture-rung-${kind}`} viewBox="0 0 100 10" preserveAspectRatio="none">
      <rect x={0} y={0.5} width={Math.max(part * 100, part > 0 ? 0.5 : 0)} height={9} />
      <path d="M0 0V10" />
    </svg>
  );
}

function rungWords(rung: Omit<LadderRung, "buckets">, whole: number): string {
  if (rung.groups === 0 && rung.bytes === 0) {
    return "nothing";
  }
  return `${sized(rung.bytes)} of ${sized(whole)} in ${counted(rung.groups, "group")}, stored as ${sized(rung.storedBytes)}`;
}

function thenWords(now: number, after: number): string {
  if (after === now) {
    return `then as now: ${sized(after)}`;
  }
  return `then ${sized(after)}: ${sized(Math.abs(after - now))} ${after > now ? "more" : "less"}`;
}

import { useId } from "react";

import { heated, sized } from "./amount";
import { HeatAxis } from "./HeatAxis";
import { limits, moved, rulesOf, type LadderRung, type Thresholds } from "./ladder";
import { LadderPicture, type Pinned } from "./LadderPicture";
import { shortScheme } from "./scheme";
import "./pictures.css";

/** What thresholds would do, as far as it is known. */
export type Consequence =
  | { readonly kind: "none" }
  | { readonly kind: "asking" }
  | { readonly kind: "failed"; readonly why: string }
  | {
      readonly kind: "known";
      readonly line: string;
      readonly warnings: readonly string[];
      readonly sentBytes: number | undefined;
      readonly rungs: readonly { readonly scheme: string; readonly bytesNow: number; readonly bytesThen: number }[];
    };

export interface LadderEditorProps {
  /** The class or policy it is of. */
  readonly label: string;
  /** Hottest first. */
  readonly rungs: readonly LadderRung[];
  /** Undefined where the rules have gaps or overlap: these are edited as text. */
  readonly thresholds: Thresholds | undefined;
  /** As they are declared, to show what was changed. */
  readonly saved: Thresholds | undefined;
  readonly onChange: (thresholds: Thresholds) => void;
  readonly consequence: Consequence;
  /** The scheme that the class is pinned to, with the pin in words. */
  readonly pinned?: Pinned;
  /** Why nothing can be changed. */
  readonly readOnly?: string;
}

/** A ladder whose thresholds are dragged, or moved by keys, over the heat of what lies on it, with what would come of it. */
export function LadderEditor({ label, rungs, thresholds, saved, onChange, consequence, pinned, readOnly }: LadderEditorProps) {
  const then = consequence.kind === "known" ? new Map(consequence.rungs.map((rung) => [rung.scheme, rung.bytesThen])) : undefined;
  const title = useId();
  return (
    <figure className="picture-figure" aria-labelledby={title}>
      <figcaption id={title}>{label}: bytes by heat, and the thresholds of its ladder</figcaption>
      {/* What scrolls must be reached by the keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className="picture-scroll" role="group" aria-label="Bytes by heat" tabIndex={0}>
        <HeatAxis rungs={rungs} thresholds={thresholds} saved={saved} onChange={readOnly === undefined ? onChange : undefined} />
      </div>
      {thresholds ? (
        <ThresholdFields thresholds={thresholds} onChange={onChange} readOnly={readOnly !== undefined} />
      ) : (
        <p className="picture-sentence">The rules leave gaps or overlap, which thresholds cannot show. Change them in the text of the policy.</p>
      )}
      {readOnly !== undefined && <p className="picture-sentence">Thresholds cannot be changed here: {readOnly}</p>}
      <LadderPicture label={label} rungs={rungs} rules={thresholds ? rulesOf(thresholds) : []} then={then} {...(pinned === undefined ? {} : { pinned })} />
      <ConsequenceText consequence={consequence} />
    </figure>
  );
}

interface FieldsProps {
  readonly thresholds: Thresholds;
  readonly onChange: (thresholds: Thresholds) => void;
  readonly readOnly: boolean;
}

/** The thresholds as numbers, for exact values. */
function ThresholdFields({ thresholds, onChange, readOnly }: FieldsProps) {
  const take = (index: number, text: string) => {
    const value = Number(text);
    if (text.trim() !== "" && Number.isFinite(value)) {
      onChange(moved(thresholds, index, value));
    }
  };
  return (
    <div className="picture-fields">
      {thresholds.values.map((value, index) => {
        const { low, high } = limits(thresholds, index);
        return (
          <label key={index}>
            {shortScheme(thresholds.schemes[index] ?? "")} from
            <input
              // The number follows the handle; while it is typed, it is nobody else's.
              key={value}
              type="number"
              step="any"
              defaultValue={value}
              readOnly={readOnly}
              title={`between ${heated(low)} and ${heated(high)}`}
              onBlur={(event) => take(index, event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter") {
                  take(index, event.currentTarget.value);
                }
              }}
            />
            accesses a day
          </label>
        );
      })}
    </div>
  );
}

function ConsequenceText({ consequence }: { readonly consequence: Consequence }) {
  return (
    <div aria-live="polite" className="picture-consequence" aria-busy={consequence.kind === "asking" || undefined}>
      {consequence.kind === "none" && <p className="picture-sentence">Move a threshold to see what it would do. Nothing moves before it is saved.</p>}
      {consequence.kind === "asking" && <p className="picture-sentence">Asking what these thresholds would do…</p>}
      {consequence.kind === "failed" && <p className="picture-sentence">What these thresholds would do is not known: {consequence.why}</p>}
      {consequence.kind === "known" && (
        <>
          <p className="picture-sentence">{consequence.line}</p>
          {consequence.sentBytes !== undefined && <p className="picture-total">{sized(consequence.sentBytes)} would cross the network.</p>}
          {consequence.warnings.map((warning) => (
            <p key={warning} className="picture-sentence">
              {warning}
            </p>
          ))}
        </>
      )}
    </div>
  );
}

import { aboutBetween, rated, sizedOf, type Whole } from "./amount";
import "./pictures.css";

export interface ProgressBarProps {
  /** What is being done, for those who do not see the bar. */
  readonly label: string;
  readonly done: Whole;
  readonly total: Whole;
  /** The words of done and total; bytes unless given. */
  readonly amount?: (done: Whole, total: Whole) => string;
  readonly bytesPerSecond?: Whole;
  readonly secondsLeft?: number;
  readonly secondsLeftLow?: number;
  readonly secondsLeftHigh?: number;
  /** Why nothing moves at the moment; in place of the time left. */
  readonly paused?: string;
  /** It has begun, and how much there is to do is not counted yet where the total is 0. */
  readonly counting?: boolean;
}

/** How far a job is, with its amounts, its rate and the time left. */
export function ProgressBar(props: ProgressBarProps) {
  const done = Number(props.done);
  const total = Number(props.total);
  const share = total > 0 ? Math.min(Math.max(done / total, 0), 1) : 0;
  // Not all of it is never 100 %.
  const percent = done < total ? Math.floor(share * 100) : 100;
  const counting = props.counting === true && total <= 0 && props.paused === undefined;
  const amount = counting ? "estimating how much there is to do" : total > 0 ? (props.amount ?? sizedOf)(props.done, props.total) : "nothing to do";
  const rest = restOf(props, done, total);
  const words = total > 0 ? `${amount} (${percent} %)` : amount;
  return (
    <div className="picture-progress" data-paused={props.paused !== undefined || undefined}>
      <div
        role="progressbar"
        aria-label={props.label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={counting ? undefined : total > 0 ? percent : 100}
        aria-valuetext={rest ? `${words}, ${rest}` : words}
        className="picture-progress-track"
      >
        <div className="picture-progress-fill" style={{ width: `${share * 100}%` }} />
      </div>
      <div className="picture-progress-words" aria-hidden="true">
        <span>{words}</span>
        {rest && <span>{rest}</span>}
      </div>
    </div>
  );
}

function restOf(props: ProgressBarProps, done: number, total: number): string {
  if (done >= total) {
    return "";
  }
  if (props.paused !== undefined) {
    if (props.paused === "") return "paused";
    return /^paused\b/i.test(props.paused) ? props.paused : `paused: ${props.paused}`;
  }
  const parts: string[] = [];
  if (props.bytesPerSecond !== undefined) {
    parts.push(`at ${rated(props.bytesPerSecond)}`);
  }
  parts.push(
    props.secondsLeft === undefined
      ? "estimating the time left"
      : `${aboutBetween(props.secondsLeft, props.secondsLeftLow, props.secondsLeftHigh)} left`,
  );
  return parts.join(", ");
}

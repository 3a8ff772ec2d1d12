import { stateLook, type Sign } from "./state";
import "./pictures.css";

export interface StateMarkProps {
  /** A state of the contract: Running, up, missing, degraded, ... */
  readonly state: string;
  /** What to say in its place, where the word of the contract is not for people. */
  readonly word?: string;
  /** Why, for whoever points at it. */
  readonly why?: string;
}

// Drawn in a square of 16.
const paths: Readonly<Record<Sign, string>> = {
  check: "M3 8.5l3.5 3.5L13 4.5",
  moving: "M2 5.5h9M8.5 2.5l3 3-3 3M14 10.5H5M7.5 7.5l-3 3 3 3",
  pause: "M5.5 3v10M10.5 3v10",
  wait: "M8 4v4.2l2.8 1.8M8 1.8a6.2 6.2 0 1 0 .01 0z",
  hand: "M8 2v5M5 3.5V9M11 3.5V9M13.5 6v4.5a4.5 4.5 0 0 1-9 .5L2.5 8.5",
  warning: "M8 2L14.5 13.5h-13zM8 6.5v3M8 11.4v.4",
  cross: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  out: "M8 2a6 6 0 1 0 .01 0zM4 4l8 8",
  question: "M5.2 5.5A2.8 2.8 0 1 1 8 8.4V10M8 12.6v.4",
  dot: "M8 6.5a1.5 1.5 0 1 0 .01 0z",
};

/** A state as icon and word. */
export function StateMark({ state, word, why }: StateMarkProps) {
  const { sign, tone } = stateLook(state);
  return (
    <span className="picture-state" data-tone={tone} data-sign={sign} title={why}>
      <svg aria-hidden="true" width={16} height={16} viewBox="0 0 16 16">
        <path d={paths[sign]} />
      </svg>
      {word ?? state}
    </span>
  );
}

import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from "react";

import { StripeDrawing } from "./StripeDrawing";
import { layOut } from "./stripe-geometry";
import { frameAt, type StripePlan } from "./stripe-picture";
import { frameSentence, pictureSummary, totalSentence } from "./stripe-picture-words";
import { StripeLegend } from "./StripeLegend";
import "./pictures.css";

export interface StripePictureProps {
  readonly plan: StripePlan;
  /** The names of the nodes by position: data columns, then parity nodes. Without them columns are only numbered. */
  readonly nodes?: readonly string[];
  /** The size of a cell, where it is known. */
  readonly blockBytes?: number;
  /** How many steps are made at first. */
  readonly start?: number;
}

const noNodes: readonly string[] = [];

/** A group as its array of cells, and what a plan does to it, step by step. */
export function StripePicture({ plan, nodes = noNodes, blockBytes, start = 0 }: StripePictureProps) {
  const last = plan.steps.length;
  const [asked, setAsked] = useState(start);
  const index = Math.min(asked, last);
  const go = (to: number) => setAsked(Math.min(Math.max(to, 0), last));
  const geometry = useMemo(() => layOut(plan, nodes), [plan, nodes]);
  const frame = useMemo(() => frameAt(plan, index), [plan, index]);
  const scroller = useRef<HTMLDivElement>(null);
  const box = geometry.boxes.find((candidate) => candidate.place.position === frame.step?.position);
  useEffect(() => {
    if (scroller.current && box) {
      bring(scroller.current, box.left, box.width);
    }
  }, [box]);
  const title = useId();
  return (
    <figure className="picture-figure" aria-labelledby={title}>
      <figcaption id={title}>
        {plan.from} to {plan.to}
      </figcaption>
      <Steps index={index} last={last} sentence={frameSentence(plan, frame)} go={go} />
      {/* What scrolls must be reached by the keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div ref={scroller} className="picture-scroll" role="group" aria-label="Array of cells" tabIndex={0}>
        <StripeDrawing plan={plan} frame={frame} geometry={geometry} nodes={nodes} label={pictureSummary(plan, frame, nodes)} />
      </div>
      <div aria-live="polite">
        <p className="picture-sentence">{frameSentence(plan, frame)}</p>
        <p className="picture-total">{totalSentence(plan, frame, blockBytes)}</p>
      </div>
      <StripeLegend plan={plan} />
    </figure>
  );
}

interface StepsProps {
  readonly index: number;
  readonly last: number;
  readonly sentence: string;
  readonly go: (to: number) => void;
}

function Steps({ index, last, sentence, go }: StepsProps) {
  const keys: Readonly<Record<string, number>> = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: last };
  const onKeyDown = (event: KeyboardEvent) => {
    const to = keys[event.key];
    if (to !== undefined && !event.altKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      go(to);
    }
  };
  return (
    <div className="picture-steps" role="toolbar" aria-label="Steps of the plan" tabIndex={-1} onKeyDown={onKeyDown}>
      <button type="button" onClick={() => go(0)} aria-disabled={index === 0}>
        Start
      </button>
      <button type="button" onClick={() => go(index - 1)} aria-disabled={index === 0}>
        Previous
      </button>
      <button type="button" onClick={() => go(index + 1)} aria-disabled={index === last}>
        Next
      </button>
      <button type="button" onClick={() => go(last)} aria-disabled={index === last}>
        End
      </button>
      <input
        type="range"
        min={0}
        max={last}
        value={index}
        aria-label="Step"
        aria-valuetext={`${index} of ${last}: ${sentence}`}
        onChange={(event) => go(event.currentTarget.valueAsNumber)}
      />
      <span className="picture-step-number">{index === 0 ? `before the first of ${last} steps` : `step ${index} of ${last}`}</span>
    </div>
  );
}

// Scrolls no further than is needed to see what happens.
function bring(scroller: HTMLElement, left: number, width: number) {
  if (left < scroller.scrollLeft) {
    scroller.scrollLeft = left - 8;
  } else if (left + width > scroller.scrollLeft + scroller.clientWidth) {
    scroller.scrollLeft = left + width - scroller.clientWidth + 8;
  }
}

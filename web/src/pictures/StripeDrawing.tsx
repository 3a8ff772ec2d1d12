import type { CSSProperties } from "react";

import { counted } from "./amount";
import { stripeLetters, stripeTint } from "./palette";
import type { Lane, PlaceBox, StripeGeometry } from "./stripe-geometry";
import { arrowKey, keptAt, placeWords, type Arrow, type Frame, type ParityNode, type StripeCell, type StripePlan } from "./stripe-picture";
import "./pictures.css";

export interface StripeDrawingProps {
  readonly plan: StripePlan;
  readonly frame: Frame;
  readonly geometry: StripeGeometry;
  readonly nodes: readonly string[];
  /** The picture in words. */
  readonly label: string;
}

/** How much smaller it may become before it is scrolled instead: its smallest letters can be read still. */
const smallest = 0.7;

/** One frame of a stripe picture. */
export function StripeDrawing({ plan, frame, geometry, nodes, label }: StripeDrawingProps) {
  return (
    <svg
      role="img"
      aria-label={label}
      className="picture-stripe"
      width={geometry.width}
      height={geometry.height}
      viewBox={`0 0 ${geometry.width} ${geometry.height}`}
      style={{ width: "100%", height: "auto", minWidth: smallest * geometry.width, maxWidth: geometry.width }}
    >
      <Heads frame={frame} geometry={geometry} nodes={nodes} />
      <Cells plan={plan} frame={frame} geometry={geometry} />
      {geometry.boxes.map((box) => (
        <Holder key={box.place.position} box={box} plan={plan} frame={frame} geometry={geometry} />
      ))}
      <Arrows frame={frame} geometry={geometry} />
      <Tallies frame={frame} geometry={geometry} />
    </svg>
  );
}

/** The names of the nodes, above what they hold. */
function Heads({ frame, geometry, nodes }: Pick<StripeDrawingProps, "frame" | "geometry" | "nodes">) {
  return geometry.boxes.map((box) => {
    const { place, left, width, name, upright } = box;
    const middle = left + width / 2;
    const active = frame.step?.position === place.position;
    return (
      <g key={place.position} className="picture-head" data-active={active || undefined}>
        <title>{nodes[place.position] === undefined ? placeWords(place) : `${placeWords(place)}: ${nodes[place.position] ?? ""}`}</title>
        <text x={middle} y={headLine(box, geometry)} textAnchor="middle" className="picture-number">
          {place.kind === "data" ? place.number : place.kind === "proxy" ? "proxy" : `${place.kind} ${place.number}`}
        </text>
        {name !== undefined &&
          (upright ? (
            <text transform={`translate(${middle + 4} ${geometry.bodyTop - 5}) rotate(-90)`}>{name}</text>
          ) : (
            <text x={middle} y={geometry.bodyTop - 5} textAnchor="middle">
              {name}
            </text>
          ))}
      </g>
    );
  });
}

// The number of a node is right above its name.
function headLine({ name, upright }: PlaceBox, geometry: StripeGeometry): number {
  if (name === undefined) {
    return geometry.bodyTop - 5;
  }
  return upright ? 12 : geometry.bodyTop - 20;
}

/** The data of the group. A cell keeps its tint until the commit; what is staged for it turns a corner of it. */
function Cells({ plan, frame, geometry }: Pick<StripeDrawingProps, "plan" | "frame" | "geometry">) {
  const read = new Set(frame.step?.cells.map((cell) => `${cell.row},${cell.column}`));
  return plan.cells.map((cell) => {
    const box = geometry.boxes[cell.column];
    const state = frame.committed ? (geometry.movesAway ? "gone" : "new") : frame.begun.has(cell.newStripe) && !geometry.movesAway ? "staged" : "old";
    return (
      <g
        key={`${cell.row},${cell.column}`}
        className="picture-cell"
        data-state={state}
        data-read={read.has(`${cell.row},${cell.column}`) || undefined}
        transform={`translate(${box?.left ?? 0} ${geometry.bodyTop + cell.row * geometry.cellHeight})`}
      >
        <title>{cellTitle(plan, cell, state)}</title>
        <CellFace cell={cell} state={state} width={geometry.cellWidth} height={geometry.cellHeight} />
      </g>
    );
  });
}

type CellState = "old" | "staged" | "new" | "gone";

interface CellFaceProps {
  readonly cell: StripeCell;
  readonly state: CellState;
  readonly width: number;
  readonly height: number;
}

function CellFace({ cell, state, width, height }: CellFaceProps) {
  const split = state === "staged";
  const newest = state === "new";
  return (
    <>
      <rect
        className={state === "gone" ? "picture-gone" : "picture-tint"}
        style={tint(newest ? cell.newStripe : cell.oldStripe, newest ? "new" : "old")}
        x={1}
        y={1}
        width={width - 2}
        height={height - 2}
        rx={2}
      />
      {split && <path className="picture-tint" style={tint(cell.newStripe, "new")} d={`M${width - 1} 1V${height - 1}H1z`} />}
      <text x={split ? width * 0.27 : width / 2} y={split ? height * 0.44 : height / 2 + 4} textAnchor="middle">
        {stripeLetters(newest ? cell.newStripe : cell.oldStripe, newest ? "new" : "old")}
      </text>
      {split && (
        <text x={width * 0.72} y={height * 0.86} textAnchor="middle">
          {stripeLetters(cell.newStripe, "new")}
        </text>
      )}
    </>
  );
}

function cellTitle(plan: StripePlan, cell: StripeCell, state: CellState): string {
  const where = `Row ${cell.row + 1}, column ${cell.column + 1}`;
  const before = `stripe ${stripeLetters(cell.oldStripe, "old")} of ${plan.from}`;
  const after = `stripe ${stripeLetters(cell.newStripe, "new")} of ${plan.to}`;
  switch (state) {
    case "old":
      return `${where}: in ${before}, will be in ${after}`;
    case "staged":
      return `${where}: in ${before}; parity of ${after} is staged`;
    case "new":
      return `${where}: in ${after}, was in ${before}`;
    case "gone":
      return `${where}: deleted here, its copy is in the new pool`;
  }
}

/** What a parity node, a proxy or a node of a new pool holds. */
function Holder({ box, plan, frame, geometry }: { readonly box: PlaceBox } & Pick<StripeDrawingProps, "plan" | "frame" | "geometry">) {
  if (box.place.kind === "data") {
    return null;
  }
  const parity = plan.parities.find((candidate) => candidate.position === box.place.position);
  const staged = frame.staged.get(box.place.position) ?? [];
  const cells = frame.stagedCells.get(box.place.position) ?? 0;
  return (
    <g transform={`translate(${box.left} ${geometry.bodyTop})`}>
      <rect className="picture-box" x={0.5} y={0.5} width={box.width - 1} height={geometry.bodyHeight - 1} rx={3} />
      {geometry.chips.counted && parity ? (
        <CountedChips parity={parity} staged={staged.length} frame={frame} />
      ) : (
        <Chips parity={parity} staged={staged} box={box} plan={plan} frame={frame} geometry={geometry} />
      )}
      {cells > 0 && (
        <text x={box.width / 2} y={18} textAnchor="middle" className={pulses(frame, box.place.position, -1) ? "picture-pulse" : undefined}>
          {counted(cells, "cell")}
        </text>
      )}
    </g>
  );
}

interface ChipsProps extends Pick<StripeDrawingProps, "plan" | "frame" | "geometry"> {
  readonly parity: ParityNode | undefined;
  readonly staged: readonly number[];
  readonly box: PlaceBox;
}

function Chips({ parity, staged, box, plan, frame, geometry }: ChipsProps) {
  const { chips } = geometry;
  const here = box.place.position;
  const reads = frame.step?.position === here ? frame.step.oldStripes : [];
  const kept = parity ? keptAt(plan, parity) : new Map<number, number>();
  const place = (i: number, top: number) => `translate(${5 + (i % chips.inLine) * chips.pitch} ${top + Math.floor(i / chips.inLine) * 21})`;
  return (
    <>
      {parity?.oldStripes.map((stripe, i) => (
        <g key={`old ${stripe}`} transform={place(i, chips.oldTop)}>
          <OldChip plan={plan} chips={chips} stripe={stripe} kept={kept.get(stripe)} committed={frame.committed} read={reads.includes(stripe)} />
        </g>
      ))}
      {staged.map((stripe, i) => (
        <g
          // A chip that is added begins its pulse anew.
          key={`new ${stripe}`}
          className={pulses(frame, here, stripe) ? "picture-chip picture-pulse" : "picture-chip"}
          data-state={frame.committed ? "new" : "staged"}
          transform={place(i, chips.newTop)}
        >
          <title>{`Parity of stripe ${stripeLetters(stripe, "new")} of ${plan.to}${frame.committed ? "" : ", staged"}`}</title>
          <rect className="picture-tint" style={tint(stripe, "new")} width={chips.width} height={chips.height} rx={3} />
          <text x={chips.width / 2} y={13} textAnchor="middle">
            {stripeLetters(stripe, "new")}
          </text>
        </g>
      ))}
    </>
  );
}

interface OldChipProps {
  readonly plan: StripePlan;
  readonly chips: StripeGeometry["chips"];
  readonly stripe: number;
  /** The new stripe that it is the parity of as well. */
  readonly kept: number | undefined;
  readonly committed: boolean;
  readonly read: boolean;
}

/** A parity block that was there before the plan: the commit deletes it, or takes it over as it is. */
function OldChip({ plan, chips, stripe, kept, committed, read }: OldChipProps) {
  const state = !committed ? "old" : kept === undefined ? "gone" : "new";
  const letters = state === "new" && kept !== undefined ? stripeLetters(kept, "new") : stripeLetters(stripe, "old");
  const before = `Parity of stripe ${stripeLetters(stripe, "old")} of ${plan.from}`;
  return (
    <g className="picture-chip" data-state={state} data-read={read || undefined}>
      <title>{state === "old" ? before : state === "gone" ? `${before}, deleted` : `${before}, kept as that of stripe ${letters} of ${plan.to}`}</title>
      <rect
        className={state === "gone" ? "picture-gone" : "picture-tint"}
        style={kept !== undefined && committed ? tint(kept, "new") : tint(stripe, "old")}
        width={chips.width}
        height={chips.height}
        rx={3}
      />
      <text x={chips.width / 2} y={13} textAnchor="middle">
        {letters}
      </text>
    </g>
  );
}

/** The parity blocks of a node as numbers, where they are too many to draw. */
function CountedChips({ parity, staged, frame }: { readonly parity: ParityNode; readonly staged: number; readonly frame: Frame }) {
  const adds = frame.step?.kind === "add" && frame.step.position === parity.position;
  return (
    <>
      <text x={8} y={20}>
        {frame.committed ? "0 old" : `${parity.oldStripes.length} old`}
      </text>
      <text x={8} y={50} className={adds ? "picture-pulse" : undefined}>
        {frame.committed ? `${parity.newStripes.length} new` : `${staged} of ${parity.newStripes.length} new`}
      </text>
    </>
  );
}

/** Only what crosses the network has an arrow: this step's, and fainter those of the steps before. */
function Arrows({ frame, geometry }: Pick<StripeDrawingProps, "frame" | "geometry">) {
  const { step } = frame;
  const now = step?.kind === "send" ? arrowKey(step.position, step.toPosition) : undefined;
  const drawn = geometry.lanes.size > 0 ? frame.arrows : frame.arrows.filter((arrow) => arrowKey(arrow.from, arrow.to) === now);
  const isNow = (arrow: Arrow) => arrowKey(arrow.from, arrow.to) === now;
  const lines = [...drawn]
    .sort((a, b) => Number(isNow(a)) - Number(isNow(b)))
    .map((arrow) => ({ arrow, now: isNow(arrow), lane: laneOf(arrow, geometry) }));
  // Counts are drawn after all lines, so that none goes through a number.
  return (
    <>
      {lines.map(({ arrow, now: isStep, lane }) => (
        <ArrowLine key={arrowKey(arrow.from, arrow.to)} arrow={arrow} now={isStep} lane={lane} top={geometry.laneTop} />
      ))}
      {lines.map(({ arrow, now: isStep, lane }) => (
        <ArrowCount key={arrowKey(arrow.from, arrow.to)} arrow={arrow} now={isStep} lane={lane} />
      ))}
    </>
  );
}

function laneOf(arrow: Arrow, geometry: StripeGeometry): Lane {
  const middle = (position: number) => {
    const box = geometry.boxes.find((candidate) => candidate.place.position === position);
    return box ? box.left + box.width / 2 : 0;
  };
  return geometry.lanes.get(arrowKey(arrow.from, arrow.to)) ?? { y: geometry.laneTop + 14, fromX: middle(arrow.from), toX: middle(arrow.to) };
}

interface ArrowProps {
  readonly arrow: Arrow;
  readonly now: boolean;
  readonly lane: Lane;
}

function ArrowLine({ arrow, now, lane, top }: ArrowProps & { readonly top: number }) {
  return (
    <g className="picture-arrow" data-now={now || undefined} data-from={arrow.from} data-to={arrow.to}>
      <path d={`M${lane.fromX} ${top + 2}V${lane.y}H${lane.toX}V${top + 6}`} />
      <path className="picture-arrow-head" d={`M${lane.toX - 4} ${top + 8}L${lane.toX} ${top + 1}L${lane.toX + 4} ${top + 8}z`} />
    </g>
  );
}

function ArrowCount({ arrow, now, lane }: ArrowProps) {
  const words = counted(arrow.blocks, "block");
  const middle = (lane.fromX + lane.toX) / 2;
  const half = words.length * 3.1 + 5;
  return (
    <g className="picture-arrow-count" data-now={now || undefined}>
      <rect x={middle - half} y={lane.y - 7} width={half * 2} height={14} rx={7} />
      <text x={middle} y={lane.y + 4} textAnchor="middle">
        {words}
      </text>
    </g>
  );
}

/** What every node sent and received so far, in blocks. */
function Tallies({ frame, geometry }: Pick<StripeDrawingProps, "frame" | "geometry">) {
  const { tallyTop } = geometry;
  if (tallyTop === undefined) {
    return null;
  }
  return (
    <g className="picture-tally">
      <text x={0} y={tallyTop + 13}>
        blocks sent
      </text>
      <text x={0} y={tallyTop + 28}>
        received
      </text>
      {geometry.boxes.map(({ place, left, width }) => (
        <g key={place.position}>
          <text x={left + width / 2} y={tallyTop + 13} textAnchor="middle">
            {frame.sent.get(place.position) ?? 0}
          </text>
          <text x={left + width / 2} y={tallyTop + 28} textAnchor="middle">
            {frame.received.get(place.position) ?? 0}
          </text>
        </g>
      ))}
    </g>
  );
}

function pulses(frame: Frame, position: number, newStripe: number): boolean {
  return frame.step?.kind === "add" && frame.step.position === position && frame.step.newStripe === newStripe;
}

function tint(stripe: number, partition: "old" | "new"): CSSProperties {
  const { light, dark } = stripeTint(stripe, partition);
  return { "--picture-light": light, "--picture-dark": dark } as CSSProperties;
}

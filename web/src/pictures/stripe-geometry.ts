import { stripeLetters } from "./palette";
import { arrowKey, frameAt, movesAway, placesOf, type Place, type StripePlan } from "./stripe-picture";

/** Where everything of a stripe picture lies, in pixels. */
export interface StripeGeometry {
  readonly width: number;
  readonly height: number;
  readonly cellWidth: number;
  readonly cellHeight: number;
  /** The columns of the picture: one for each node. */
  readonly boxes: readonly PlaceBox[];
  readonly bodyTop: number;
  readonly bodyHeight: number;
  readonly chips: ChipGrid;
  /** One for each pair of nodes between which blocks cross, or none where they are too many to be told apart. */
  readonly lanes: ReadonlyMap<string, Lane>;
  readonly laneTop: number;
  /** The line of what nodes sent; what they received is below it. Undefined where nothing crosses the network. */
  readonly tallyTop: number | undefined;
  /** Whether the data is elsewhere at the end. */
  readonly movesAway: boolean;
}

export interface PlaceBox {
  readonly place: Place;
  readonly left: number;
  readonly width: number;
  /** The node's name, shortened to fit. */
  readonly name: string | undefined;
  readonly upright: boolean;
}

/** How the parity blocks of a node are laid out; undefined sizes where they are too many to draw and are counted instead. */
export interface ChipGrid {
  readonly counted: boolean;
  readonly width: number;
  readonly height: number;
  readonly pitch: number;
  readonly inLine: number;
  readonly oldTop: number;
  readonly newTop: number;
}

export interface Lane {
  readonly y: number;
  readonly fromX: number;
  readonly toX: number;
}

const letterWidth = 6.6;
const gutter = 78;
const gap = 22;
const numberLine = 16;
const longestName = 18;
const laneHeight = 17;
const mostLanes = 12;
const mostChips = 48;

/** Lays out a picture; nodes are names by position. */
export function layOut(plan: StripePlan, nodes: readonly string[]): StripeGeometry {
  const pairs = frameAt(plan, plan.steps.length).arrows;
  const cellHeight = plan.columns > 32 ? 24 : 28;
  const oldLetters = longestLetters(plan.cells.map((cell) => cell.oldStripe));
  const newLetters = longestLetters(plan.cells.map((cell) => cell.newStripe));
  const base = plan.columns > 32 ? 28 : plan.columns > 16 ? 32 : 40;
  const cellWidth = Math.max(base, Math.ceil((oldLetters + newLetters) * letterWidth) + 10);
  const chips = layOutChips(plan, Math.max(oldLetters, newLetters));
  const boxes = layOutPlaces(plan, nodes, cellWidth, boxWidth(chips), pairs.length > 0 ? gutter : 0);
  const upright = boxes.filter((box) => box.upright);
  const nameHeight = Math.max(boxes.some((box) => box.name) ? 16 : 0, ...upright.map((box) => textWidth(box.name ?? "") + 6));
  const bodyTop = numberLine + nameHeight;
  const bodyHeight = Math.max(plan.rows * cellHeight, chips.newTop + chipsHeight(chips, mostOf(plan, "newStripes")));
  const lanesDrawn = pairs.length > mostLanes ? 1 : pairs.length;
  const laneTop = bodyTop + bodyHeight;
  const laneBottom = laneTop + (lanesDrawn === 0 ? 0 : lanesDrawn * laneHeight + 12);
  const last = boxes.at(-1);
  return {
    width: (last ? last.left + last.width : 0) + 2,
    height: laneBottom + (lanesDrawn === 0 ? 2 : 34),
    cellWidth,
    cellHeight,
    boxes,
    bodyTop,
    bodyHeight,
    chips,
    lanes: pairs.length > mostLanes ? new Map<string, Lane>() : layOutLanes(pairs, boxes, laneTop),
    laneTop,
    tallyTop: lanesDrawn === 0 ? undefined : laneBottom,
    movesAway: movesAway(plan),
  };
}

function layOutPlaces(plan: StripePlan, nodes: readonly string[], cellWidth: number, parityWidth: number, start: number): PlaceBox[] {
  const boxes: PlaceBox[] = [];
  let left = start;
  let before: Place | undefined;
  for (const place of placesOf(plan)) {
    if (before) {
      left += before.kind === "data" && place.kind === "data" ? 0 : before.kind === place.kind ? 8 : gap;
    }
    const width = place.kind === "data" ? cellWidth : place.kind === "proxy" ? 64 : parityWidth;
    const full = nodes[place.position];
    const name = full === undefined ? undefined : shortened(full);
    boxes.push({ place, left, width, name, upright: name !== undefined && textWidth(name) + 4 > width });
    left += width;
    before = place;
  }
  return boxes;
}

function layOutChips(plan: StripePlan, letters: number): ChipGrid {
  const most = Math.max(mostOf(plan, "oldStripes"), mostOf(plan, "newStripes"));
  const width = Math.max(20, Math.ceil(letters * letterWidth) + 8);
  const grid = { width, height: 18, pitch: width + 3, oldTop: 4 };
  if (most > mostChips) {
    return { ...grid, counted: true, inLine: 1, newTop: 34 };
  }
  const inLine = Math.max(1, Math.min(most, 6, Math.max(3, Math.ceil(Math.sqrt(most)))));
  const oldLines = Math.ceil(mostOf(plan, "oldStripes") / inLine);
  return { ...grid, counted: false, inLine, newTop: 4 + oldLines * 21 + 9 };
}

function boxWidth(chips: ChipGrid): number {
  return chips.counted ? 92 : Math.max(64, chips.inLine * chips.pitch + 7);
}

function chipsHeight(chips: ChipGrid, count: number): number {
  return chips.counted ? 30 : Math.ceil(count / chips.inLine) * 21 + 4;
}

function layOutLanes(pairs: readonly { readonly from: number; readonly to: number }[], boxes: readonly PlaceBox[], top: number): Map<string, Lane> {
  const ends = new Map<number, number>();
  for (const { from, to } of pairs) {
    ends.set(from, (ends.get(from) ?? 0) + 1);
    ends.set(to, (ends.get(to) ?? 0) + 1);
  }
  const used = new Map<number, number>();
  // Lines at one node stand side by side, so that each can be followed.
  const next = (position: number) => {
    const box = boxes.find((candidate) => candidate.place.position === position);
    const number = (used.get(position) ?? 0) + 1;
    used.set(position, number);
    return box ? box.left + (box.width * number) / ((ends.get(position) ?? 0) + 1) : 0;
  };
  return new Map(pairs.map(({ from, to }, i) => [arrowKey(from, to), { y: top + 14 + i * laneHeight, fromX: next(from), toX: next(to) }]));
}

function mostOf(plan: StripePlan, which: "oldStripes" | "newStripes"): number {
  return Math.max(0, ...plan.parities.map((parity) => parity[which].length));
}

function longestLetters(stripes: readonly number[]): number {
  return stripeLetters(stripes.reduce((most, stripe) => Math.max(most, stripe), 0), "old").length;
}

/** How wide a text of 11 pixels is at most. */
export function textWidth(text: string): number {
  return text.length * letterWidth;
}

// The end of a node's name tells nodes apart more often than its middle.
function shortened(name: string): string {
  return name.length <= longestName ? name : `${name.slice(0, 8)}…${name.slice(-(longestName - 9))}`;
}

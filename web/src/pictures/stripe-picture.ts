/** One group as an array of cells, and step by step what a plan does to it. Positions are data columns, then parity nodes. */
export interface StripePlan {
  readonly from: string;
  readonly to: string;
  readonly rows: number;
  readonly columns: number;
  readonly cells: readonly StripeCell[];
  readonly parities: readonly ParityNode[];
  readonly steps: readonly StripeStep[];
  readonly blocksSent: number;
}

export interface StripeCell {
  readonly row: number;
  readonly column: number;
  readonly oldStripe: number;
  readonly newStripe: number;
}

export interface ParityNode {
  readonly position: number;
  readonly oldStripes: readonly number[];
  readonly newStripes: readonly number[];
}

export interface StripeStep {
  readonly kind: "send" | "add" | "commit";
  readonly text: string;
  /** Where it happens; -1 for the commit, which happens in the catalog. */
  readonly position: number;
  /** Of a send. */
  readonly toPosition: number;
  readonly blocks: number;
  /** What is read for it. */
  readonly cells: readonly { readonly row: number; readonly column: number }[];
  readonly oldStripes: readonly number[];
  /** The new stripe whose parity is made; -1 where it is not parity. */
  readonly newStripe: number;
  readonly blocksSentTotal: number;
}

/** A node of the picture. */
export interface Place {
  readonly position: number;
  readonly kind: "data" | "parity" | "proxy" | "new";
  /** Counted from 1 within its kind, as the sentences of the steps do. */
  readonly number: number;
}

/** The blocks that one node sent to another. */
export interface Arrow {
  readonly from: number;
  readonly to: number;
  readonly blocks: number;
}

/** The group after some of the steps. */
export interface Frame {
  /** How many steps were made; 0 is before the first. */
  readonly index: number;
  readonly step: StripeStep | undefined;
  readonly committed: boolean;
  readonly sent: ReadonlyMap<number, number>;
  readonly received: ReadonlyMap<number, number>;
  readonly arrows: readonly Arrow[];
  /** The new stripes whose parity is staged, by position. */
  readonly staged: ReadonlyMap<number, readonly number[]>;
  /** How many data cells are staged, by position. */
  readonly stagedCells: ReadonlyMap<number, number>;
  /** The new stripes of which some parity is staged. */
  readonly begun: ReadonlySet<number>;
  readonly blocksSent: number;
}

/** The nodes that the plan has to do with, from left to right. */
export function placesOf(plan: StripePlan): readonly Place[] {
  const places: Place[] = [];
  for (let column = 0; column < plan.columns; column++) {
    places.push({ position: column, kind: "data", number: column + 1 });
  }
  plan.parities.forEach((parity, i) => places.push({ position: parity.position, kind: "parity", number: i + 1 }));
  const proxy = plan.columns + plan.parities.length;
  const beyond = new Set<number>();
  for (const step of plan.steps) {
    for (const position of [step.position, step.toPosition]) {
      if (position >= proxy) {
        beyond.add(position);
      }
    }
  }
  for (const position of [...beyond].sort((a, b) => a - b)) {
    places.push(position === proxy ? { position, kind: "proxy", number: 1 } : { position, kind: "new", number: position - proxy });
  }
  return places;
}

/** "column 3", "parity node 1", "the proxy", "node 2 of the new pool": as the sentences of the steps call it. */
export function placeWords(place: Place): string {
  switch (place.kind) {
    case "data":
      return `column ${place.number}`;
    case "parity":
      return `parity node ${place.number}`;
    case "proxy":
      return "the proxy";
    case "new":
      return `node ${place.number} of the new pool`;
  }
}

/** The group after the first so many steps. */
export function frameAt(plan: StripePlan, index: number): Frame {
  const sent = new Map<number, number>();
  const received = new Map<number, number>();
  const arrows = new Map<string, Arrow>();
  const staged = new Map<number, number[]>();
  const stagedCells = new Map<number, number>();
  const begun = new Set<number>();
  const made = plan.steps.slice(0, index);
  for (const step of made) {
    if (step.kind === "send") {
      add(sent, step.position, step.blocks);
      add(received, step.toPosition, step.blocks);
      const key = arrowKey(step.position, step.toPosition);
      const blocks = (arrows.get(key)?.blocks ?? 0) + step.blocks;
      arrows.set(key, { from: step.position, to: step.toPosition, blocks });
    } else if (step.kind === "add" && step.newStripe >= 0) {
      staged.set(step.position, [...(staged.get(step.position) ?? []), step.newStripe]);
      begun.add(step.newStripe);
    } else if (step.kind === "add") {
      add(stagedCells, step.position, 1);
    }
  }
  const step = made.at(-1);
  return {
    index: made.length,
    step,
    committed: step?.kind === "commit",
    sent,
    received,
    arrows: [...arrows.values()],
    staged,
    stagedCells,
    begun,
    blocksSent: step?.blocksSentTotal ?? 0,
  };
}

/** Tells pairs of nodes apart. */
export function arrowKey(from: number, to: number): string {
  return `${from}>${to}`;
}

/**
 * The parity blocks of a node that stay what they are, as when only the number of parity rows changes: the new stripe of
 * each by its old one. No step makes them, and their stripes have the same cells before and after.
 */
export function keptAt(plan: StripePlan, parity: ParityNode): ReadonlyMap<number, number> {
  const made = new Set(plan.steps.filter((step) => step.kind === "add" && step.position === parity.position).map((step) => step.newStripe));
  const kept = new Map<number, number>();
  if (movesAway(plan)) {
    return kept;
  }
  for (const stripe of parity.newStripes) {
    const before = made.has(stripe) ? undefined : plan.cells.find((cell) => cell.newStripe === stripe)?.oldStripe;
    if (before !== undefined && parity.oldStripes.includes(before)) {
      kept.set(before, stripe);
    }
  }
  return kept;
}

/** Whether the data is somewhere else afterwards, as when it is copied to a new pool. */
export function movesAway(plan: StripePlan): boolean {
  const lastOfGroup = plan.columns + plan.parities.length;
  return plan.steps.filter((step) => step.kind === "add" && step.newStripe < 0 && step.position >= lastOfGroup).length >= plan.cells.length;
}

function add(counts: Map<number, number>, position: number, blocks: number) {
  counts.set(position, (counts.get(position) ?? 0) + blocks);
}

import { counted, sized } from "./amount";
import { stripeLetters } from "./palette";
import { placesOf, placeWords, type Frame, type StripePlan } from "./stripe-picture";

/** What happens in a frame, in one sentence. */
export function frameSentence(plan: StripePlan, frame: Frame): string {
  if (frame.step) {
    return frame.step.text.charAt(0).toUpperCase() + frame.step.text.slice(1);
  }
  const stripes = 1 + Math.max(-1, ...plan.cells.map((cell) => cell.oldStripe));
  const holders = plan.parities.filter((parity) => parity.oldStripes.length > 0).length;
  const names = stripes === 1 ? stripeLetters(0, "old") : `${stripeLetters(0, "old")} to ${stripeLetters(stripes - 1, "old")}`;
  const cells = `Before: ${counted(plan.cells.length, "cell")} in ${counted(stripes, "stripe")} of ${plan.from}, ${names}`;
  switch (holders) {
    case 0:
      return `${cells}; no node holds parity.`;
    case 1:
      return `${cells}; one node holds a parity block of ${stripes === 1 ? "it" : "each"}.`;
  }
  return `${cells}; ${holders} nodes hold a parity block of ${stripes === 1 ? "it" : "each"}.`;
}

/** The running total of what crossed the network, with its whole and its reason. */
export function totalSentence(plan: StripePlan, frame: Frame, blockBytes?: number): string {
  if (!plan.steps.some((step) => step.kind === "add")) {
    return "0 B over the network: no block is made, parity is only deleted.";
  }
  if (plan.blocksSent === 0) {
    return "0 B over the network: every node adds up only what it already holds.";
  }
  const blocks = `${frame.blocksSent} of ${counted(plan.blocksSent, "block")} sent over the network so far`;
  if (blockBytes === undefined) {
    return `${blocks}.`;
  }
  return `${blocks}: ${sized(frame.blocksSent * blockBytes)} of ${sized(plan.blocksSent * blockBytes)}, ${sized(blockBytes)} each.`;
}

/** The picture for those who do not see it. */
export function pictureSummary(plan: StripePlan, frame: Frame, nodes: readonly string[]): string {
  const where = (position: number) => {
    const place = placesOf(plan).find((candidate) => candidate.position === position);
    const words = place ? placeWords(place) : `position ${position}`;
    const node = nodes[position];
    return node === undefined ? words : `${words} (${node})`;
  };
  const array = `A group of ${counted(plan.rows, "row")} and ${counted(plan.columns, "column")} with ${counted(plan.parities.length, "parity node")}`;
  const protection = frame.committed ? `under ${plan.to}` : `under ${plan.from}`;
  const arrow =
    frame.step?.kind === "send" ? ` An arrow goes from ${where(frame.step.position)} to ${where(frame.step.toPosition)}: ${counted(frame.step.blocks, "block")}.` : "";
  const pulse = frame.step?.kind === "add" ? ` What is added is marked at ${where(frame.step.position)}.` : "";
  return `${array}, ${protection}.${arrow}${pulse}`;
}

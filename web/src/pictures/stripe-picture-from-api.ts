import { StepKind, type Picture, type PictureStep } from "../gen/console/v1/plans_pb";
import type { StripePlan, StripeStep } from "./stripe-picture";

/** The console's picture of a plan as what StripePicture draws. */
export function stripePlanFromApi(picture: Picture): StripePlan {
  return {
    from: picture.from,
    to: picture.to,
    rows: picture.rows,
    columns: picture.columns,
    cells: picture.cells,
    parities: picture.parities,
    steps: picture.steps.map(stepFromApi),
    blocksSent: picture.cost?.blocksSent ?? picture.steps.at(-1)?.blocksSentTotal ?? 0,
  };
}

function stepFromApi(step: PictureStep): StripeStep {
  const sends = step.kind === StepKind.SEND;
  return {
    kind: sends ? "send" : step.kind === StepKind.COMMIT ? "commit" : "add",
    text: step.text,
    position: step.position,
    toPosition: sends ? step.toPosition : -1,
    blocks: step.blocks,
    cells: step.cells,
    oldStripes: step.oldStripes,
    newStripe: step.newStripe,
    blocksSentTotal: step.blocksSentTotal,
  };
}

import { frameAt, placesOf, placeWords, type StripePlan } from "./stripe-picture";

/** What one node sends and receives. */
export interface Load {
  readonly node: string;
  readonly sent: number;
  readonly received: number;
}

/** The blocks that every node of a plan sends and receives in all, nodes by position. */
export function loadOfPlan(plan: StripePlan, nodes: readonly string[] = []): readonly Load[] {
  const end = frameAt(plan, plan.steps.length);
  return placesOf(plan).map((place) => ({
    node: nodes[place.position] ?? placeWords(place),
    sent: end.sent.get(place.position) ?? 0,
    received: end.received.get(place.position) ?? 0,
  }));
}

/** badStates are those of nodes that do not serve, the worst first. */
export const badStates: readonly string[] = ["missing", "out", "down", "suspect"];

/** badness orders states with the worst first, and all of nodes that serve last. */
export function badness(state: string): number {
  const place = badStates.indexOf(state);
  return place < 0 ? badStates.length : place;
}

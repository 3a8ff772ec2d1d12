/** rungsOf splits a ladder as groups have it, codes joined by commas, some of which have commas of their own. */
export function rungsOf(ladder: string): string[] {
  return ladder.match(/[a-z]+\(\d+(?:,\d+)?\)/g) ?? [];
}

const ways: Record<string, string> = {
  restripe: "this plan",
  reencode: "re-encoding every group",
  "copy-pool": "copying to a new pool",
  "ers1-proxy": "ERS, algorithms 1 and 3, with a proxy",
  "ers2-proxy": "ERS, algorithms 2 and 4, with a proxy",
  "srs-proxy": "Scale-RS, with a proxy",
  "lower-bound": "the least any way can send",
};

/** wayText is a way to make a move, in words; one that is not known keeps its name. */
export function wayText(way: string): string {
  return ways[way] ?? way;
}

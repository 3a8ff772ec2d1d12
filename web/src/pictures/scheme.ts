/** A code as people compare them: k data blocks and m that may be lost. Replication keeps m further copies of one. */
export interface Scheme {
  readonly data: number;
  readonly parity: number;
  readonly copies: boolean;
}

/** Reads "rs(4,2)" and "rep(3)"; undefined for what is neither, such as the name of a declared scheme. */
export function parseScheme(code: string): Scheme | undefined {
  const match = /^\s*(?:rs\(\s*(\d+)\s*,\s*(\d+)\s*\)|rep\(\s*(\d+)\s*\))\s*$/.exec(code);
  if (!match) {
    return undefined;
  }
  const [, data, parity, copies] = match;
  if (copies !== undefined) {
    return Number(copies) < 1 ? undefined : { data: 1, parity: Number(copies) - 1, copies: true };
  }
  return Number(data) < 1 ? undefined : { data: Number(data), parity: Number(parity), copies: false };
}

/** "4+2", or "rep 3". */
export function schemeText(scheme: Scheme): string {
  return scheme.copies ? `rep ${scheme.parity + 1}` : `${scheme.data}+${scheme.parity}`;
}

/** "rs(4,2): 4 data and 2 parity blocks, can lose 2 nodes". */
export function schemeSentence(code: string, scheme: Scheme): string {
  const lose = scheme.parity === 1 ? "can lose 1 node" : `can lose ${scheme.parity === 0 ? "no node" : `${scheme.parity} nodes`}`;
  if (scheme.copies) {
    return `${code}: ${scheme.parity + 1} ${scheme.parity === 0 ? "copy" : "copies"}, ${lose}`;
  }
  return `${code}: ${scheme.data} data and ${scheme.parity} parity ${scheme.data + scheme.parity === 1 ? "block" : "blocks"}, ${lose}`;
}

/** "4+2" of rs(4,2); a name of a declared scheme stays what it is. */
export function shortScheme(code: string): string {
  const scheme = parseScheme(code);
  return scheme ? schemeText(scheme) : code;
}

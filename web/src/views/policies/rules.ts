/** Rule is the range of accesses a day that a scheme is for. */
export interface Rule {
  scheme: string;
  atLeast?: number | undefined;
  below?: number | undefined;
}

/** writeRules is rules as links have them: "rep(3):100:;rs(4,2):1:100". */
export function writeRules(rules: readonly Rule[]): string {
  return rules.map(({ scheme, atLeast, below }) => `${scheme}:${atLeast ?? ""}:${below ?? ""}`).join(";");
}

/** readRules reads them again; none where a link was not made by writeRules. */
export function readRules(text: string): Rule[] {
  const rules = text.split(";").map((part): Rule | undefined => {
    const match = /^([^:]+):([0-9.e+-]*):([0-9.e+-]*)$/.exec(part);
    if (match?.[1] === undefined) return undefined;
    const bound = (number: string | undefined): number | undefined => (number === undefined || number === "" || !Number.isFinite(Number(number)) ? undefined : Number(number));
    return { scheme: match[1], atLeast: bound(match[2]), below: bound(match[3]) };
  });
  return rules.every((rule) => rule !== undefined) ? rules : [];
}

/** One scheme of a ladder and what lies on it. */
export interface LadderRung {
  readonly scheme: string;
  readonly groups: number;
  readonly bytes: number;
  readonly storedBytes: number;
  readonly buckets: readonly HeatBucket[];
}

/** The bytes of groups that are used at least atLeast and less than below times a day; below is absent without end. */
export interface HeatBucket {
  readonly atLeast: number;
  readonly below?: number | undefined;
  readonly bytes: number;
}

/** A temperature rule of a policy. */
export interface HeatRule {
  readonly scheme: string;
  readonly atLeast?: number | undefined;
  readonly below?: number | undefined;
}

/** Rules whose bounds meet: schemes, hottest first, and between each two of them a threshold in accesses a day. */
export interface Thresholds {
  readonly schemes: readonly string[];
  readonly values: readonly number[];
}

// The gateways do not tell heats apart below 2^-6 and from 2^20 on: the numbers of two digits next to these.
export const lowestThreshold = 0.016;
export const highestThreshold = 1_000_000;

/** The thresholds of rules; undefined where they leave gaps or overlap, which thresholds cannot say. */
export function thresholdsOf(rules: readonly HeatRule[]): Thresholds | undefined {
  const hottestFirst = [...rules].sort((a, b) => (b.atLeast ?? 0) - (a.atLeast ?? 0));
  const last = hottestFirst.length - 1;
  const meet = hottestFirst.every((rule, i) => {
    const hotter = hottestFirst[i - 1];
    const above = hotter ? rule.below === hotter.atLeast : rule.below === undefined;
    const under = i === last ? (rule.atLeast ?? 0) === 0 : rule.atLeast !== undefined && rule.atLeast > 0;
    return above && under;
  });
  if (!meet || hottestFirst.length === 0) {
    return undefined;
  }
  return { schemes: hottestFirst.map((rule) => rule.scheme), values: hottestFirst.slice(0, -1).map((rule) => rule.atLeast ?? 0) };
}

/** The rules that thresholds stand for, hottest first. */
export function rulesOf({ schemes, values }: Thresholds): readonly HeatRule[] {
  return schemes.map((scheme, i) => ({
    scheme,
    ...(i < values.length ? { atLeast: values[i] } : {}),
    ...(i > 0 ? { below: values[i - 1] } : {}),
  }));
}

/** Moves one threshold as near to a value as its neighbours let it, to a number of two digits. */
export function moved(thresholds: Thresholds, index: number, to: number): Thresholds {
  const { low, high } = limits(thresholds, index);
  if (low > high) {
    return thresholds; // its neighbours leave it no room
  }
  const value = Math.min(Math.max(roundish(to), low), high);
  return { ...thresholds, values: thresholds.values.map((old, i) => (i === index ? value : old)) };
}

/** How far a threshold can go: not to its neighbours, and not where heats are not told apart. */
export function limits({ values }: Thresholds, index: number): { readonly low: number; readonly high: number } {
  const colder = values[index + 1];
  const hotter = values[index - 1];
  return {
    low: colder === undefined ? lowestThreshold : stepped(colder, 1),
    high: hotter === undefined ? highestThreshold : stepped(hotter, -1),
  };
}

/** The next value up or down, a tenth away. */
export function stepped(value: number, direction: 1 | -1): number {
  return roundish(direction > 0 ? value * 1.1 : value / 1.1);
}

function roundish(value: number): number {
  return Number(value.toPrecision(2));
}

/** "used between 1 and 100 times a day", in the words of the console. */
export function ruleWords({ atLeast, below }: HeatRule, number: (value: number) => string): string {
  if (atLeast && below !== undefined) {
    return `used between ${number(atLeast)} and ${number(below)} times a day`;
  }
  if (below !== undefined) {
    return `used less than ${number(below)} times a day`;
  }
  return atLeast ? `used at least ${number(atLeast)} times a day` : "however often it is used";
}

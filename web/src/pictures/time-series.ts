import { money } from "../words/money";
import { overhead, rated, rateNumber, sized } from "./amount";

/** A value over time. */
export interface Series {
  readonly label: string;
  /** Oldest first. */
  readonly points: readonly SeriesPoint[];
}

export interface SeriesPoint {
  readonly at: Date;
  readonly value: number;
}

/** A value that series are held against, such as a budget. */
export interface SeriesLimit {
  readonly label: string;
  readonly value: number;
}

/** A moment to tell before from after. */
export interface SeriesMoment {
  readonly at: Date;
  readonly label: string;
}

/** What values are, and so how they are written. */
export type Unit = "bytes" | "bytes/s" | "factor" | "money" | "number";

/** A value in words with its unit. */
export function valueWords(value: number, unit: Unit): string {
  switch (unit) {
    case "bytes":
      return sized(Math.round(value));
    case "bytes/s":
      return rated(Math.round(value));
    case "factor":
      return overhead(value);
    case "money":
      return money(value);
    case "number":
      return rateNumber(value);
  }
}

/** Columns for a plot: seconds, then the values of each series at them, null where a series says nothing. */
export type Columns = readonly [readonly number[], ...(readonly (number | null)[])[]];

// So many times the usual distance of two samples without one, and nothing is known in between.
const gap = 3;

/** Puts series on one axis of time. Where samples are missing there is a hole: a line through it would say something. */
export function columnsOf(series: readonly Series[]): Columns {
  const times = [...new Set(series.flatMap((one) => [...one.points.map((point) => point.at.getTime()), ...holes(one.points)]))].sort((a, b) => a - b);
  const values = series.map((one) => {
    const known = new Map(one.points.map((point) => [point.at.getTime(), point.value]));
    return times.map((time) => known.get(time) ?? null);
  });
  return [times.map((time) => time / 1000), ...values];
}

function holes(points: readonly SeriesPoint[]): number[] {
  const times = points.map((point) => point.at.getTime());
  const distances = times.slice(1).map((time, i) => time - (times[i] ?? time));
  const usual = [...distances].sort((a, b) => a - b)[Math.floor(distances.length / 2)] ?? 0;
  return distances.flatMap((distance, i) => (distance > usual * gap ? [(times[i] ?? 0) + usual] : []));
}

/** The range of the axis: always with zero, and with the limit where there is one. */
export function valueRange(series: readonly Series[], limit?: number): readonly [number, number] {
  const values = [...series.flatMap((one) => one.points.map((point) => point.value)), limit ?? 0];
  const low = values.reduce((a, b) => Math.min(a, b), 0);
  const high = values.reduce((a, b) => Math.max(a, b), 0);
  return low === 0 && high === 0 ? [0, 1] : [low * 1.08, high * 1.08];
}

/** Values of the axis that are easy to read, zero among them: of bytes in binary steps, of all else in steps of 1, 2 and 5. */
export function valueTicks(low: number, high: number, unit: Unit): readonly number[] {
  const atLeast = (high - low) / 5;
  const decade = 10 ** Math.floor(Math.log10(atLeast));
  const bytes = unit === "bytes" || unit === "bytes/s";
  const step = bytes ? Math.max(2 ** Math.ceil(Math.log2(atLeast)), 1) : ([1, 2, 5].find((times) => times * decade >= atLeast) ?? 10) * decade;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

/** Seconds between the labels of the axis of time: no less than they tell apart. */
export const timeSteps = [minute, 5 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 30 * day, 90 * day, 365 * day];

/** A label of the axis of time: the hour, or the day where it begins. */
export function timeWords(seconds: number, timeZone?: string): string {
  const moment = new Date(seconds * 1000);
  const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone }).format(moment);
  return clock === "00:00" ? new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone }).format(moment) : clock;
}

/** What a series comes to, for those who do not see it: first, last and highest value. */
export function seriesWords(series: Series, unit: Unit): string {
  const first = series.points[0];
  const last = series.points.at(-1);
  if (!first || !last) {
    return `${series.label}: no samples`;
  }
  const most = series.points.reduce((a, b) => Math.max(a, b.value), first.value);
  return `${series.label}: ${valueWords(first.value, unit)} at first, ${valueWords(last.value, unit)} now, ${valueWords(most, unit)} at most`;
}

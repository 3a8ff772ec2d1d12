/** How hot one class was over time. */
export interface HeatRow {
  readonly name: string;
  readonly samples: readonly HeatSample[];
  /** The pin that is in force, in words. */
  readonly pinned?: string;
}

export interface HeatSample {
  readonly at: Date;
  /** Accesses a day of a group, as a mean by bytes. */
  readonly heat: number;
}

/** A column of a heat map: a span of time with the mean of each row's samples in it, undefined where there is none. */
export interface HeatGrid {
  readonly starts: readonly Date[];
  readonly heats: readonly (readonly (number | undefined)[])[];
}

const hour = 3_600_000;

/** Sorts samples into hours, or into spans of so many hours that no more columns than these come of it. */
export function heatGrid(rows: readonly HeatRow[], from: Date, until: Date, mostColumns = 168): HeatGrid {
  const hours = Math.max(Math.ceil((until.getTime() - from.getTime()) / hour), 1);
  const step = Math.ceil(hours / mostColumns) * hour;
  const columns = Math.ceil((hours * hour) / step);
  const starts = Array.from({ length: columns }, (_, i) => new Date(from.getTime() + i * step));
  return { starts, heats: rows.map((row) => means(row.samples, from.getTime(), step, columns)) };
}

function means(samples: readonly HeatSample[], from: number, step: number, columns: number): (number | undefined)[] {
  const sums = new Array<number>(columns).fill(0);
  const counts = new Array<number>(columns).fill(0);
  for (const { at, heat } of samples) {
    const column = Math.floor((at.getTime() - from) / step);
    if (column >= 0 && column < columns) {
      sums[column] = (sums[column] ?? 0) + heat;
      counts[column] = (counts[column] ?? 0) + 1;
    }
  }
  return sums.map((sum, i) => (counts[i] ? sum / counts[i] : undefined));
}

/** A label of the time axis. */
export interface TimeTick {
  readonly column: number;
  readonly text: string;
  /** A day begins here. */
  readonly day: boolean;
}

/** Labels at whole hours that are as far apart as their texts need: 1, 2, 3, 6, 12 hours or days. */
export function timeTicks(starts: readonly Date[], columnWidth: number, timeZone?: string): readonly TimeTick[] {
  const first = starts[0];
  if (!first) {
    return [];
  }
  const step = ((starts[1]?.getTime() ?? first.getTime() + hour) - first.getTime()) / hour;
  const space = 48;
  const every = [1, 2, 3, 6, 12, 24, 48, 96, 168].find((hours) => (hours / step) * columnWidth >= space) ?? 336;
  const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone });
  const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone });
  const ticks: TimeTick[] = [];
  let before = -Infinity;
  starts.forEach((start, column) => {
    const ofDay = Number(clock.format(start).slice(0, 2));
    const day = ofDay < step;
    const due = every < 24 ? Math.floor(ofDay / every) * every > ofDay - step : day;
    if (due && (column - before) * columnWidth >= space) {
      ticks.push({ column, text: day ? date.format(start) : clock.format(start), day });
      before = column;
    }
  });
  return ticks;
}

// Amounts in words, the same as the console says them: operator/words. testdata/wording.json is what it says.

/** A count or a number of bytes; what the contract has as 64 bits arrives as a bigint. */
export type Whole = number | bigint;

const binaryUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] as const;

/** "1.2 GiB": one decimal below 10, none above. */
export function sized(bytes: Whole): string {
  let value = Number(bytes);
  if (value < 0) {
    return `-${sized(-value)}`;
  }
  if (value < 10) {
    return `${value} B`;
  }
  let unit = 0;
  for (; value >= 1024 && unit < binaryUnits.length - 1; unit++) {
    value /= 1024;
  }
  const rounded = Math.floor(value * 10 + 0.5) / 10;
  return `${rounded < 10 ? rounded.toFixed(1) : fixed(rounded, 0)} ${binaryUnits[unit] ?? ""}`;
}

/** "40 MiB/s"; a limit of 0 is none. */
export function rated(bytesPerSecond: Whole): string {
  return `${sized(bytesPerSecond)}/s`;
}

/** "1.2 GiB of 3.0 GiB". */
export function sizedOf(part: Whole, whole: Whole): string {
  return `${sized(part)} of ${sized(whole)}`;
}

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** "1,200 objects", or "1 object". */
export function counted(count: Whole, what: string): string {
  return Number(count) === 1 ? `1 ${what}` : `${grouped.format(count)} ${what}s`;
}

/** "about 4 min". What is less than a second is a second. */
export function about(seconds: number): string {
  if (seconds < 1) {
    return "about 1 s";
  }
  const unit = unitOf(seconds);
  return `about ${fixed(seconds / unit.seconds, unit.decimals)} ${unit.name}`;
}

/** "about 14 min (11-19)": the bounds have the unit of the estimate. */
export function aboutBetween(seconds: number, low?: number, high?: number): string {
  const text = about(seconds);
  if (low === undefined || high === undefined || seconds < 1 || !Number.isFinite(low) || !Number.isFinite(high)) {
    return text;
  }
  const unit = unitOf(seconds);
  const from = fixed(low / unit.seconds, unit.decimals);
  const to = fixed(high / unit.seconds, unit.decimals);
  return from === to ? text : `${text} (${from}-${to})`;
}

/** "1.84x": stored bytes of one protected byte. */
export function overhead(factor: number): string {
  return `${factor.toFixed(2)}x`;
}

/** "120", "1.5", "0.016": a rate of accesses, to as many digits as matter. */
export function rateNumber(value: number): string {
  if (value === 0 || value >= 100) {
    return grouped.format(value);
  }
  return String(Number(value.toPrecision(2)));
}

/** "120 accesses a day". */
export function heated(accessesADay: number): string {
  return accessesADay === 1 ? "1 access a day" : `${rateNumber(accessesADay)} accesses a day`;
}

interface Unit {
  readonly name: string;
  readonly seconds: number;
  readonly decimals: 0 | 1;
}

function unitOf(seconds: number): Unit {
  if (seconds < 90) {
    return { name: "s", seconds: 1, decimals: 0 };
  }
  if (seconds < 90 * 60) {
    return { name: "min", seconds: 60, decimals: 0 };
  }
  if (seconds < 36 * 3600) {
    return { name: "h", seconds: 3600, decimals: 1 };
  }
  return { name: "d", seconds: 86400, decimals: 1 };
}

// Go rounds what lies exactly between two numbers to the even one, toFixed rounds it up.
function fixed(value: number, decimals: 0 | 1): string {
  const fraction = value - Math.floor(value);
  if (decimals === 0 && fraction === 0.5) {
    const floor = Math.floor(value);
    return String(floor % 2 === 0 ? floor : floor + 1);
  }
  if (decimals === 1 && fraction === 0.25) {
    return (Math.floor(value) + 0.2).toFixed(1);
  }
  return value.toFixed(decimals);
}

/** Lasts are the spans of time that end now, by the name they have in links. */
export const lasts = {
  hour: { label: "Last hour", milliseconds: 3_600_000 },
  day: { label: "Last day", milliseconds: 86_400_000 },
  week: { label: "Last week", milliseconds: 604_800_000 },
} as const;

const isLast = (text: string): text is keyof typeof lasts => text in lasts;

/** timeOf is the time that a link says: so long before now, or a time with its zone. Undefined: it says none. */
export function timeOf(text: string, now: Date): Date | undefined {
  if (isLast(text)) return new Date(now.getTime() - lasts[text].milliseconds);
  const at = new Date(text);
  return text === "" || Number.isNaN(at.getTime()) ? undefined : at;
}

/** kindOf is how a period is chosen: a span that ends now, from one time to another, or none. */
export function kindOf(since: string, until: string): keyof typeof lasts | "between" | "any" {
  if (isLast(since) && until === "") return since;
  return since === "" && until === "" ? "any" : "between";
}

/** mistakeIn is what is wrong with a period, in words; empty: nothing is. */
export function mistakeIn(since: string, until: string, now: Date): string {
  for (const text of [since, until]) {
    if (text !== "" && timeOf(text, now) === undefined) return `"${text}" is no time; choose one.`;
  }
  const from = timeOf(since, now);
  const to = timeOf(until, now);
  return from !== undefined && to !== undefined && from >= to ? "It ends before it begins." : "";
}

/** fieldOf is a time as a field for local times has it; empty where a link says none. */
export function fieldOf(text: string, now: Date): string {
  const at = timeOf(text, now);
  if (at === undefined) return "";
  const digits = (value: number): string => String(value).padStart(2, "0");
  return `${String(at.getFullYear()).padStart(4, "0")}-${digits(at.getMonth() + 1)}-${digits(at.getDate())}T${digits(at.getHours())}:${digits(at.getMinutes())}`;
}

/** linkOf is what a field for local times has as a link says it: the same moment everywhere. */
export function linkOf(field: string): string {
  const at = new Date(field);
  return field === "" || Number.isNaN(at.getTime()) ? "" : at.toISOString();
}

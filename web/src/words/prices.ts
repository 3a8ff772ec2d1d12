/** Rates are the entries of a price table that a policy may declare, in one currency, whichever it is. */
export interface Rates {
  storageGiBMonth: number;
  networkGiB: number;
  millionOperations: number;
  paybackMonths: number;
}

/** The names of the entries, as a policy spells them. */
export const rateNames = ["storageGiBMonth", "networkGiB", "millionOperations", "paybackMonths"] as const satisfies readonly (keyof Rates)[];

/** ratesOf is the price table that the console says is in force. */
export function ratesOf(prices: { storageGibMonth: number; networkGib: number; millionOperations: number; paybackMonths: number }): Rates {
  return { storageGiBMonth: prices.storageGibMonth, networkGiB: prices.networkGib, millionOperations: prices.millionOperations, paybackMonths: prices.paybackMonths };
}

/** storedFor is what storing so many bytes for a month costs. */
export function storedFor(bytes: number | bigint, { storageGiBMonth }: Pick<Rates, "storageGiBMonth">): number {
  return (Number(bytes) / 2 ** 30) * storageGiBMonth;
}

/** mistakeInRate is what is wrong with an entry; empty: nothing is. */
export function mistakeInRate(name: keyof Rates, value: number): string {
  if (!Number.isFinite(value) || value < 0) return "Give a number, 0 or more.";
  return name === "paybackMonths" && value === 0 ? "Give a number of months above 0." : "";
}

/** changedRates is the entries that differ. */
export function changedRates(before: Rates, after: Rates): Partial<Rates> {
  return Object.fromEntries(rateNames.filter((name) => before[name] !== after[name]).map((name) => [name, after[name]]));
}

/** writeRates is entries as links have them: "storageGiBMonth:0.03;paybackMonths:12". */
export function writeRates(rates: Partial<Rates>): string {
  return rateNames.flatMap((name) => (rates[name] === undefined ? [] : [`${name}:${rates[name]}`])).join(";");
}

/** readRates reads them again; what was not written so is left out. */
export function readRates(text: string): Partial<Rates> {
  const rates: Partial<Rates> = {};
  for (const part of text.split(";")) {
    const [name, number = ""] = part.split(":");
    const known = rateNames.find((one) => one === name);
    if (known !== undefined && number !== "" && mistakeInRate(known, Number(number)) === "") rates[known] = Number(number);
  }
  return rates;
}

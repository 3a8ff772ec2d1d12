import { parseDocument } from "yaml";

import { rateNames, type Rates } from "../../words/prices";

/** withPrices is the text of a policy with other prices; comments, other prices and all else stay. */
export function withPrices(yaml: string, rates: Partial<Rates>): string {
  const document = parseDocument(yaml);
  if (Object.keys(rates).length === 0 || document.errors.length > 0 || !document.hasIn(["spec"])) return yaml;
  for (const name of rateNames) {
    const value = rates[name];
    // A fraction is a quantity only as text.
    if (value !== undefined) document.setIn(["spec", "prices", name], Number.isInteger(value) ? value : String(value));
  }
  return document.toString();
}

const withCents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** money is an amount in the currency of the price table, which has no name. Small ones keep the digits that matter. */
export function money(amount: number): string {
  if (amount === 0 || Math.abs(amount) >= 0.01) return withCents.format(amount);
  return amount.toLocaleString("en", { maximumSignificantDigits: 2, maximumFractionDigits: 20 });
}

import { describe, expect, it } from "vitest";

import { changedRates, mistakeInRate, readRates, storedFor, writeRates, type Rates } from "./prices";

const rates: Rates = { storageGiBMonth: 0.02, networkGiB: 0.01, millionOperations: 0.4, paybackMonths: 6 };

describe("prices", () => {
  it("cost what is stored by the GiB", () => {
    expect(storedFor(3n << 30n, rates)).toBeCloseTo(0.06, 10);
    expect(storedFor(0, rates)).toBe(0);
  });

  it("are written in links and read again", () => {
    const changed = changedRates(rates, { ...rates, storageGiBMonth: 0.03, paybackMonths: 12 });
    expect(changed).toEqual({ storageGiBMonth: 0.03, paybackMonths: 12 });
    expect(writeRates(changed)).toBe("storageGiBMonth:0.03;paybackMonths:12");
    expect(readRates(writeRates(changed))).toEqual(changed);
    expect(readRates("storageGiBMonth:-1;other:2;networkGiB:;paybackMonths:0;millionOperations:x")).toEqual({});
    expect(changedRates(rates, rates)).toEqual({});
  });

  it("say what is wrong with them", () => {
    expect(mistakeInRate("networkGiB", -0.1)).not.toBe("");
    expect(mistakeInRate("networkGiB", 0)).toBe("");
    expect(mistakeInRate("paybackMonths", 0)).not.toBe("");
    expect(mistakeInRate("storageGiBMonth", Number.NaN)).not.toBe("");
  });
});

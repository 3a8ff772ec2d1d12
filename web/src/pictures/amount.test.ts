import { describe, expect, it } from "vitest";

import { about, aboutBetween, counted, heated, overhead, rated, rateNumber, sized, sizedOf } from "./amount";
import wording from "./testdata/wording.json";

describe("the console's wording", () => {
  it.each(wording.sized)("$in bytes are $text", ({ in: bytes, text }) => {
    expect(sized(bytes)).toBe(text);
    expect(sized(BigInt(bytes))).toBe(text);
  });

  it.each(wording.about)("$in seconds are $text", ({ in: seconds, text }) => {
    expect(about(seconds)).toBe(text);
  });

  it.each(wording.counted)("$in objects are $text", ({ in: count, text }) => {
    expect(counted(count, "object")).toBe(text);
    expect(counted(BigInt(count), "object")).toBe(text);
  });
});

describe("ranges of time", () => {
  it("has the unit of the estimate once", () => {
    expect(aboutBetween(14 * 60, 11 * 60, 19 * 60)).toBe("about 14 min (11-19)");
    expect(aboutBetween(2 * 3600, 1.5 * 3600, 3 * 3600)).toBe("about 2.0 h (1.5-3.0)");
  });

  it("says no range that has no width", () => {
    expect(aboutBetween(14 * 60, 14 * 60, 14 * 60 + 5)).toBe("about 14 min");
    expect(aboutBetween(0.5, 0.1, 0.9)).toBe("about 1 s");
  });

  it("says no range that is not known", () => {
    expect(aboutBetween(240)).toBe("about 4 min");
    expect(aboutBetween(240, 200)).toBe("about 4 min");
    expect(aboutBetween(240, 200, Infinity)).toBe("about 4 min");
  });
});

it("says rates, parts and factors with their units", () => {
  expect(rated(40n << 20n)).toBe("40 MiB/s");
  expect(sizedOf(1n << 30n, 3n << 30n)).toBe("1.0 GiB of 3.0 GiB");
  expect(overhead(1.8412)).toBe("1.84x");
});

it("says heat to the digits that matter", () => {
  expect([0, 0.015625, 0.5, 1, 12.34, 99.9, 120.4, 1048576].map(rateNumber)).toEqual(["0", "0.016", "0.5", "1", "12", "100", "120", "1,048,576"]);
  expect(heated(1)).toBe("1 access a day");
  expect(heated(120)).toBe("120 accesses a day");
});

import { describe, expect, it } from "vitest";

import { fieldOf, kindOf, linkOf, mistakeIn, timeOf } from "./period";

const now = new Date("2026-01-02T08:00:00Z");

describe("a period in a link", () => {
  it("is a span that ends now, or a time", () => {
    expect(timeOf("hour", now)).toEqual(new Date("2026-01-02T07:00:00Z"));
    expect(timeOf("day", now)).toEqual(new Date("2026-01-01T08:00:00Z"));
    expect(timeOf("week", now)).toEqual(new Date("2025-12-26T08:00:00Z"));
    expect(timeOf("2026-01-01T00:00:00.000Z", now)).toEqual(new Date("2026-01-01T00:00:00Z"));
    expect(timeOf("", now)).toBeUndefined();
    expect(timeOf("yesterday", now)).toBeUndefined();
  });

  it("is chosen in one of three ways", () => {
    expect(kindOf("", "")).toBe("any");
    expect(kindOf("day", "")).toBe("day");
    expect(kindOf("day", "2026-01-02T07:30:00.000Z")).toBe("between");
    expect(kindOf("", "2026-01-02T07:30:00.000Z")).toBe("between");
  });

  it("says what is wrong with it", () => {
    expect(mistakeIn("yesterday", "", now)).toBe('"yesterday" is no time; choose one.');
    expect(mistakeIn("2026-01-02T07:00:00Z", "2026-01-02T06:00:00Z", now)).toBe("It ends before it begins.");
    expect(mistakeIn("hour", "2026-01-02T07:30:00.000Z", now)).toBe("");
    expect(mistakeIn("", "", now)).toBe("");
  });

  it("is the same moment in a field of local times and in a link", () => {
    const at = new Date(2026, 2, 4, 5, 6);
    expect(fieldOf(at.toISOString(), now)).toBe("2026-03-04T05:06");
    expect(linkOf("2026-03-04T05:06")).toBe(at.toISOString());
    expect(fieldOf("soon", now)).toBe("");
    expect(linkOf("soon")).toBe("");
    expect(linkOf("")).toBe("");
  });
});

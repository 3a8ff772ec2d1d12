import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";

import { PinSchema } from "../gen/console/v1/policies_pb";
import { morning } from "../testing/fixtures";
import { pinEnd, pinWords } from "./pin";
import { moment } from "./time";

describe("a pin in words", () => {
  it("says until when, by whom and why", () => {
    const pin = create(PinSchema, { scheme: "rs(4,2)", until: morning, by: "ada", reason: "the audit" });
    expect(pinWords(pin)).toBe(`Pinned to rs(4,2) until ${moment(morning)} by ada: the audit`);
    expect(pinWords(create(PinSchema, { scheme: "rs(4,2)", until: morning }))).toBe(`Pinned to rs(4,2) until ${moment(morning)}.`);
  });

  it("says that it has ended", () => {
    expect(pinWords(create(PinSchema, { scheme: "rs(4,2)", until: morning, by: "ada", ended: true }))).toBe(`The pin to rs(4,2) ended ${moment(morning)} and has no effect any more.`);
  });
});

describe("the end of a pin", () => {
  const now = new Date("2026-01-02T08:00:00Z");

  it("is as long from now as was chosen", () => {
    const days = (lasting: "day" | "week" | "month") => ((pinEnd(lasting, now, "")?.getTime() ?? 0) - now.getTime()) / 86_400_000;
    expect([days("day"), days("week"), days("month")]).toEqual([1, 7, 30]);
  });

  it("is the time that was typed, and none where none was", () => {
    expect(pinEnd("other", now, "2026-03-04T05:06")).toEqual(new Date(2026, 2, 4, 5, 6));
    expect(pinEnd("other", now, "")).toBeUndefined();
    expect(pinEnd("other", now, "soon")).toBeUndefined();
  });
});

import { create } from "@bufbuild/protobuf";
import { fireEvent, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it, vi } from "vitest";

import { ClassHeatSchema, WhatIfResponseSchema } from "../gen/console/v1/heat_pb";
import { expectAccessible } from "../testing/axe";
import { axisScale, axisTicks, heatAtX, xOf } from "./heat-axis";
import { moved, rulesOf, ruleWords, stepped, thresholdsOf, type LadderRung, type Thresholds } from "./ladder";
import { consequenceFromApi, rulesFromApi, rulesToApi, rungsFromApi } from "./ladder-from-api";
import { LadderEditor, type Consequence } from "./LadderEditor";
import { LadderPicture } from "./LadderPicture";

// Looking for what is not accessible takes as long as the machine lets it.
vi.setConfig({ testTimeout: 60_000 });

const gib = 1 << 30;
const rungs: readonly LadderRung[] = [
  { scheme: "rep(3)", groups: 48, bytes: gib, storedBytes: 3 * gib, buckets: [{ atLeast: 128, below: 256, bytes: gib }] },
  { scheme: "rs(4,2)", groups: 0, bytes: 0, storedBytes: 0, buckets: [] },
  {
    scheme: "rs(12,2)",
    groups: 1200,
    bytes: 3 * gib,
    storedBytes: 3.5 * gib,
    buckets: [
      { atLeast: 0, below: 1 / 64, bytes: 2 * gib },
      { atLeast: 1, below: 2, bytes: gib },
    ],
  },
];
const rules = [
  { scheme: "rep(3)", atLeast: 100 },
  { scheme: "rs(4,2)", atLeast: 1, below: 100 },
  { scheme: "rs(12,2)", below: 1 },
];
const declared: Thresholds = { schemes: ["rep(3)", "rs(4,2)", "rs(12,2)"], values: [100, 1] };

describe("thresholds", () => {
  it("are what rules whose bounds meet say, in any order, and back", () => {
    expect(thresholdsOf(rules)).toEqual(declared);
    expect(thresholdsOf([...rules].reverse())).toEqual(declared);
    expect(rulesOf(declared)).toEqual(rules);
    expect(thresholdsOf([{ scheme: "rep(3)" }])).toEqual({ schemes: ["rep(3)"], values: [] });
  });

  it("cannot say gaps, overlaps, or nothing", () => {
    expect(thresholdsOf([])).toBeUndefined();
    expect(thresholdsOf([{ scheme: "rep(3)", atLeast: 10 }, { scheme: "rs(4,2)", below: 9 }])).toBeUndefined();
    expect(thresholdsOf([{ scheme: "rep(3)", atLeast: 10 }, { scheme: "rs(4,2)", below: 11 }])).toBeUndefined();
    expect(thresholdsOf([{ scheme: "rep(3)", atLeast: 10 }])).toBeUndefined();
    expect(thresholdsOf([{ scheme: "rep(3)", below: 10 }])).toBeUndefined();
  });

  it("move to two digits, never past each other or to where heats are not told apart", () => {
    expect(moved(declared, 0, 123.4).values).toEqual([120, 1]);
    expect(moved(declared, 0, 0.3).values).toEqual([1.1, 1]);
    expect(moved(declared, 1, 5000).values).toEqual([100, 91]);
    expect(moved(declared, 1, 0).values).toEqual([100, 0.016]);
    expect(moved(declared, 0, 1e12).values).toEqual([1e6, 1]);
    expect(moved({ schemes: ["a", "b", "c", "d"], values: [1.1, 1.05, 1] }, 1, 3).values).toEqual([1.1, 1.05, 1]);
  });

  it("always change by a step", () => {
    for (let value = 0.016; value < 1e6; value = stepped(value, 1)) {
      expect(stepped(value, 1)).toBeGreaterThan(value);
      expect(stepped(value, -1)).toBeLessThan(value);
    }
  });

  it("are said in words", () => {
    expect(rules.map((rule) => ruleWords(rule, String))).toEqual([
      "used at least 100 times a day",
      "used between 1 and 100 times a day",
      "used less than 1 times a day",
    ]);
    expect(ruleWords({ scheme: "rep(3)" }, String)).toBe("however often it is used");
  });
});

describe("the axis of heat", () => {
  const scale = axisScale(rungs, [declared], 50, 650);

  it("gives places of heats and back", () => {
    for (const heat of [1 / 64, 0.5, 1, 100, 1000]) {
      expect(heatAtX(scale, xOf(scale, heat))).toBeCloseTo(heat, 6);
    }
    expect(xOf(scale, 0)).toBe(50);
    expect(xOf(scale, 1e9)).toBe(650);
    expect(heatAtX(scale, -1000)).toBe(scale.lowest);
  });

  it("reaches as far as the hottest bytes and thresholds", () => {
    const hot = axisScale([{ ...rungs[0], scheme: "rep(3)", groups: 1, bytes: 1, storedBytes: 3, buckets: [{ atLeast: 2 ** 20, bytes: 1 }] }], [undefined], 0, 100);
    expect(hot.highest).toBe(2e6);
    expect(axisTicks(scale)).toEqual([0.01, 0.1, 1, 10, 100, 1000]);
  });
});

describe("what the console says", () => {
  it("becomes rungs and rules", () => {
    const heat = create(ClassHeatSchema, {
      rungs: [{ scheme: "rep(3)", groups: 4n, bytes: 10n, storedBytes: 30n, buckets: [{ atLeast: 2, below: 4, groups: 4n, bytes: 10n }] }],
      rules: [{ scheme: "rep(3)", atLeast: 2 }, { scheme: "rs(4,2)", below: 2 }],
    });
    expect(rungsFromApi(heat)).toEqual([{ scheme: "rep(3)", groups: 4, bytes: 10, storedBytes: 30, buckets: [{ atLeast: 2, below: 4, bytes: 10 }] }]);
    expect(thresholdsOf(rulesFromApi(heat.rules))).toEqual({ schemes: ["rep(3)", "rs(4,2)"], values: [2] });
    expect(rulesFromApi(rulesToApi(rulesOf(declared)))).toEqual(rules.map(({ scheme, atLeast, below }) => ({ scheme, atLeast, below })));
  });

  it("becomes a consequence, also where nothing can be said yet", () => {
    const known = create(WhatIfResponseSchema, {
      then: { line: "Moves 2 groups.", total: { bytesSent: 5n }, feasibility: [{ message: "needs 3 more nodes" }] },
      rungs: [{ scheme: "rep(3)", bytesNow: 3n, bytesThen: 1n }],
    });
    expect(consequenceFromApi(known)).toEqual({
      kind: "known",
      line: "Moves 2 groups.",
      warnings: ["needs 3 more nodes"],
      sentBytes: 5,
      rungs: [{ scheme: "rep(3)", bytesNow: 3, bytesThen: 1 }],
    });
    const unknown = create(WhatIfResponseSchema, { then: { unknown: "no heat was reported" } });
    expect(consequenceFromApi(unknown)).toMatchObject({ line: "Nothing can be said yet: no heat was reported", sentBytes: undefined });
  });
});

describe("the ladder", () => {
  it("says what lies on each rung with its whole, and what would", () => {
    render(<LadderPicture label="media" rungs={rungs} rules={rules} then={new Map([["rep(3)", gib], ["rs(4,2)", gib], ["rs(12,2)", 2 * gib]])} />);
    expect(screen.getAllByRole("listitem").map((item) => item.textContent)).toEqual([
      "rep 3used at least 100 times a day1.0 GiB of 4.0 GiB in 48 groups, stored as 3.0 GiBthen as now: 1.0 GiB",
      "4+2used between 1 and 100 times a daynothingthen 1.0 GiB: 1.0 GiB more",
      "12+2used less than 1 times a day3.0 GiB of 4.0 GiB in 1,200 groups, stored as 3.5 GiBthen 2.0 GiB: 1.0 GiB less",
    ]);
  });
});

/** An editor whose thresholds a page keeps. */
function Edited({ onChange, consequence = { kind: "none" }, readOnly }: { readonly onChange?: (values: readonly number[]) => void; readonly consequence?: Consequence; readonly readOnly?: string }) {
  const [thresholds, setThresholds] = useState(declared);
  const change = (changed: Thresholds) => {
    setThresholds(changed);
    onChange?.(changed.values);
  };
  return (
    <LadderEditor
      label="media"
      rungs={rungs}
      thresholds={thresholds}
      saved={declared}
      onChange={change}
      consequence={consequence}
      {...(readOnly === undefined ? {} : { readOnly })}
    />
  );
}

describe("the editor", () => {
  const handle = () => screen.getByRole("slider", { name: "Threshold between rep 3 and 4+2" });

  it("moves a threshold by keys", () => {
    const onChange = vi.fn<(values: readonly number[]) => void>();
    const { container } = render(<Edited onChange={onChange} />);
    expect(handle().getAttribute("aria-valuetext")).toBe("100 accesses a day");
    for (const key of ["ArrowRight", "ArrowUp", "ArrowLeft", "PageDown", "Home", "End"]) {
      fireEvent.keyDown(handle(), { key });
    }
    expect(onChange.mock.calls.map(([values]) => values[0])).toEqual([110, 120, 110, 11, 1.1, 1e6]);
    expect(container.querySelectorAll(".picture-saved")).toHaveLength(1);
  });

  it("moves a threshold by dragging it, and only while it is held", () => {
    const onChange = vi.fn<(values: readonly number[]) => void>();
    const { container } = render(<Edited onChange={onChange} />);
    const svg = container.querySelector("svg.picture-heat-axis");
    if (!svg) {
      throw new Error("no axis");
    }
    vi.spyOn(svg, "getBoundingClientRect").mockReturnValue(new DOMRect(10, 0, 720, 190));
    SVGElement.prototype.setPointerCapture = vi.fn();
    const scale = axisScale(rungs, [declared], 74, 704);
    // The pointer events of jsdom have no place.
    const point = (type: string, heat: number) => fireEvent(handle(), new MouseEvent(type, { bubbles: true, clientX: 10 + xOf(scale, heat) }));
    point("pointermove", 10);
    expect(onChange).not.toHaveBeenCalled();
    point("pointerdown", 100);
    point("pointermove", 50);
    point("pointermove", 10);
    point("pointerup", 10);
    point("pointermove", 500);
    expect(onChange.mock.calls).toEqual([[[50, 1]], [[10, 1]]]);
    expect(handle().getAttribute("aria-valuetext")).toBe("10 accesses a day");
  });

  it("takes an exact number, and keeps what it has where there is none", async () => {
    const user = userEvent.setup();
    const onChange = vi.fn<(values: readonly number[]) => void>();
    render(<Edited onChange={onChange} />);
    const field = () => screen.getByLabelText(/^rep 3 from/);
    await user.clear(field());
    await user.type(field(), "250{Enter}");
    expect(onChange).toHaveBeenLastCalledWith([250, 1]);
    await user.clear(field());
    onChange.mockClear();
    await user.tab();
    expect(onChange).not.toHaveBeenCalled();
  });

  it("changes nothing without the right to, and says why", () => {
    const onChange = vi.fn<(values: readonly number[]) => void>();
    render(<Edited onChange={onChange} readOnly="you lack the verb plan" />);
    fireEvent.keyDown(handle(), { key: "ArrowRight" });
    fireEvent.pointerDown(handle(), { pointerId: 1 });
    fireEvent.pointerMove(handle(), { clientX: 300, pointerId: 1 });
    expect(onChange).not.toHaveBeenCalled();
    expect(handle().getAttribute("aria-readonly")).toBe("true");
    expect(screen.getByText("Thresholds cannot be changed here: you lack the verb plan")).toBeTruthy();
  });

  it("sends people to the text where thresholds cannot say the rules", () => {
    render(<LadderEditor label="media" rungs={rungs} thresholds={undefined} saved={undefined} onChange={vi.fn()} consequence={{ kind: "none" }} />);
    expect(screen.queryByRole("slider")).toBeNull();
    expect(screen.getByText(/leave gaps or overlap/)).toBeTruthy();
  });

  it.each<{ consequence: Consequence; text: RegExp }>([
    { consequence: { kind: "none" }, text: /Nothing moves before it is saved/ },
    { consequence: { kind: "asking" }, text: /Asking what these thresholds would do/ },
    { consequence: { kind: "failed", why: "backend demo does not answer" }, text: /is not known: backend demo does not answer/ },
    {
      consequence: { kind: "known", line: "Moves 2 groups.", warnings: ["needs 3 more nodes"], sentBytes: 0, rungs: [{ scheme: "rep(3)", bytesNow: gib, bytesThen: 0 }] },
      text: /0 B would cross the network/,
    },
  ])("says the consequence: $consequence.kind", async ({ consequence, text }) => {
    const { container } = render(<Edited consequence={consequence} />);
    expect(screen.getByText(text)).toBeTruthy();
    await expectAccessible(container);
  });
});

import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { render, screen } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";

import { HistorySchema } from "../gen/console/v1/heat_pb";
import { GroupSchema } from "../gen/console/v1/objects_pb";
import { expectAccessible } from "../testing/axe";
import { renderPlain } from "../testing/render";
import { counted, rated } from "./amount";
import { nodesOf, plans } from "./fixtures";
import { groupOf } from "./fixtures-group";
import { hoursLater } from "./fixtures-heat";
import { wholeness } from "./group-layout";
import { groupFromApi } from "./group-layout-from-api";
import { GroupLayout } from "./GroupLayout";
import { loadOfPlan } from "./load";
import { NodeLoad } from "./NodeLoad";
import { columnsOf, seriesWords, timeWords, valueRange, valueTicks, valueWords, type Unit } from "./time-series";
import { seriesOfClasses } from "./time-series-from-api";
import { TimeSeries } from "./TimeSeries";

// Looking for what is not accessible takes as long as the machine lets it.
vi.setConfig({ testTimeout: 60_000 });

describe("the load of nodes", () => {
  it("of a plan is what it sends, node by node", () => {
    const loads = loadOfPlan(plans.widen, nodesOf(plans.widen, "n"));
    expect(loads).toContainEqual({ node: "n6", sent: 2, received: 3 });
    expect(loads.reduce((sum, load) => sum + load.sent, 0)).toBe(9);
    expect(loads.reduce((sum, load) => sum + load.received, 0)).toBe(9);
    expect(loadOfPlan(plans.throughProxy)).toContainEqual({ node: "the proxy", sent: 4, received: 8 });
  });

  it("has its numbers with their unit, and bars to the scale of the greatest", async () => {
    const { container } = render(<NodeLoad label="Nodes now" loads={[{ node: "n1", sent: 40 << 20, received: 10 << 20 }, { node: "n2", sent: 0, received: 20 << 20 }]} amount={rated} />);
    expect(screen.getAllByRole("row").map((row) => row.textContent)).toEqual(["nodesentreceived", "n140 MiB/s10 MiB/s", "n20 B/s20 MiB/s"]);
    const widths = [...container.querySelectorAll("rect")].map((bar) => Number(bar.getAttribute("width")));
    expect(widths).toEqual([100, 25, 0, 50]);
    await expectAccessible(container);
  });

  it("says so where nothing is sent", () => {
    render(<NodeLoad label="Blocks" loads={loadOfPlan(plans.merge)} amount={(blocks) => counted(blocks, "block")} />);
    expect(screen.getByText("No node sends or receives anything: 0 blocks.")).toBeTruthy();
    expect(screen.queryByRole("table")).toBeNull();
  });
});

describe("a group on its nodes", () => {
  it("has every part with its node and its state", async () => {
    const { container } = render(<GroupLayout group={groupOf("rs(4,2)", 5, 20, ["ok", "missing"])} />);
    const parts = screen.getAllByRole("listitem").map((part) => part.textContent);
    expect(parts).toHaveLength(7);
    expect(parts[1]).toBe("column 2n2+8missing");
    expect(parts[5]).toBe("parity 1n6ok");
    expect(screen.getByText("1 of 7 parts is not as they should be: readable, and 1 more can be lost.")).toBeTruthy();
    await expectAccessible(container);
  });

  it.each([
    { states: [], says: "All 14 parts are there." },
    { states: ["missing", "suspect"], says: "2 of 14 parts are not as they should be: readable, but the loss of one more may lose data." },
    { states: ["missing", "down", "unreachable"], says: "3 of 14 parts are not as they should be, and rs(12,2) can lose 2 of a stripe: some of the data may not be readable." },
  ])("says what it means that $states", ({ states, says }) => {
    expect(wholeness(groupOf("rs(12,2)", 12, 1, states), 2)).toBe(says);
  });

  it("is what the console says", () => {
    const group = create(GroupSchema, {
      id: "g1",
      scheme: "rep(3)",
      rows: 1,
      columns: 1,
      cellBytes: 4096n,
      bytes: 10n,
      slots: [{ slot: 0, role: "data", node: "n1", state: "ok" }, { slot: 1, role: "parity", node: "n2", state: "missing" }],
    });
    expect(groupFromApi(group)).toEqual({
      id: "g1",
      scheme: "rep(3)",
      rows: 1,
      columns: 1,
      cellBytes: 4096,
      packed: false,
      bytes: 10,
      slots: [{ slot: 0, role: "data", node: "n1", state: "ok" }, { slot: 1, role: "parity", node: "n2", state: "missing" }],
    });
  });
});

describe("values over time", () => {
  const every = (hours: readonly number[]) => hours.map((hour) => ({ at: hoursLater(hour), value: hour }));

  it("have one axis of time, and holes where samples are missing", () => {
    const [times, one, other] = columnsOf([
      { label: "a", points: every([0, 1, 2, 3, 9, 10]) },
      { label: "b", points: every([0.5]) },
    ]);
    const origin = hoursLater(0).getTime() / 1000;
    expect(times.map((time) => (time - origin) / 3600)).toEqual([0, 0.5, 1, 2, 3, 4, 9, 10]);
    expect(one).toEqual([0, null, 1, 2, 3, null, 9, 10]);
    expect(other).toEqual([null, 0.5, null, null, null, null, null, null]);
  });

  it("are drawn from zero, with the limit in the picture", () => {
    expect(valueRange([{ label: "a", points: every([50, 100]) }])).toEqual([0, 108]);
    expect(valueRange([{ label: "a", points: every([50]) }], 200)).toEqual([0, 216]);
    expect(valueRange([])).toEqual([0, 1]);
    expect(valueRange([{ label: "a", points: [{ at: hoursLater(0), value: -10 }] }])[0]).toBeLessThan(-10);
  });

  it("are said with their units", () => {
    const words = (["bytes", "bytes/s", "factor", "money", "number"] as const satisfies readonly Unit[]).map((unit) => valueWords(2048, unit));
    expect(words).toEqual(["2.0 KiB", "2.0 KiB/s", "2048.00x", "2,048.00", "2,048"]);
    expect(seriesWords({ label: "stored", points: every([1024, 4096, 2048]) }, "bytes")).toBe("stored: 1.0 KiB at first, 2.0 KiB now, 4.0 KiB at most");
    expect(seriesWords({ label: "stored", points: [] }, "bytes")).toBe("stored: no samples");
  });

  it("have an axis whose numbers are easy to read", () => {
    expect(valueTicks(0, 690 * 2 ** 20, "bytes").map((value) => valueWords(value, "bytes"))).toEqual(["0 B", "256 MiB", "512 MiB"]);
    expect(valueTicks(0, 1.98, "factor")).toEqual([0, 0.5, 1, 1.5]);
    expect(valueTicks(-30, 100, "number")).toEqual([0, 50, 100]);
    for (let high = 1; high < 2 ** 50; high = Math.ceil(high * 1.7)) {
      for (const unit of ["bytes", "number"] as const) {
        const ticks = valueTicks(0, high, unit);
        expect(ticks[0]).toBe(0);
        expect(ticks.length).toBeGreaterThanOrEqual(2);
        expect(ticks.length).toBeLessThanOrEqual(6);
      }
    }
  });

  it("have the day where it begins", () => {
    expect(timeWords(Date.UTC(2026, 10, 21, 18, 30) / 1000, "UTC")).toBe("18:30");
    expect(timeWords(Date.UTC(2026, 10, 22) / 1000, "UTC")).toBe("22 Nov");
  });

  it("come from the history of classes", () => {
    const history = create(HistorySchema, {
      classes: [{ class: "media", samples: [{ at: timestampFromDate(hoursLater(1)), bytes: 5n, storedBytes: 15n, savedBytes: 1n }, { bytes: 9n }] }],
    });
    expect(seriesOfClasses(history, "storedBytes")).toEqual([{ label: "media", points: [{ at: hoursLater(1), value: 15 }] }]);
  });

  it("have words beside the picture, with limit and moments", async () => {
    const { container } = renderPlain(
      <TimeSeries
        label="Bytes stored"
        unit="bytes"
        series={[{ label: "stored", points: every([1024, 2048]) }]}
        limit={{ label: "capacity", value: 4096 }}
        moments={[{ at: hoursLater(1100), label: "cooled to 12+2" }]}
      />,
    );
    expect(screen.getByRole("figure", { name: "Bytes stored" })).toBeTruthy();
    expect(screen.getAllByRole("listitem").map((item) => item.textContent)).toEqual([
      "stored: 1.0 KiB at first, 2.0 KiB now, 2.0 KiB at most",
      "capacity: 4.0 KiB",
      "cooled to 12+2",
    ]);
    await expectAccessible(container);
  });

  it("say what to expect where there is nothing yet", () => {
    renderPlain(<TimeSeries label="Bytes stored" unit="bytes" series={[{ label: "stored", points: [] }]} empty="No samples yet: one is taken every 5 min." />);
    expect(screen.getByText("No samples yet: one is taken every 5 min.")).toBeTruthy();
  });
});

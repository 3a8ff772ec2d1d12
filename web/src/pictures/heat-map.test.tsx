import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";

import { HistorySchema } from "../gen/console/v1/heat_pb";
import { expectAccessible } from "../testing/axe";
import { HeatMap } from "./HeatMap";
import { heatGrid, timeTicks } from "./heat-map";
import { bucketMiddle, heatRowsFromApi } from "./heat-map-from-api";

// Looking for what is not accessible takes as long as the machine lets it.
vi.setConfig({ testTimeout: 60_000 });

const hour = 3_600_000;
const start = new Date("2026-11-21T22:00:00Z");
const after = (hours: number) => new Date(start.getTime() + hours * hour);

describe("the grid", () => {
  it("has the mean of each hour, and nothing where there is no sample", () => {
    const samples = [
      { at: after(0), heat: 1 },
      { at: after(0.5), heat: 3 },
      { at: after(2.9), heat: 7 },
      { at: after(-1), heat: 100 },
      { at: after(4), heat: 100 },
    ];
    const grid = heatGrid([{ name: "media", samples }], start, after(4));
    expect(grid.starts).toEqual([after(0), after(1), after(2), after(3)]);
    expect(grid.heats).toEqual([[2, undefined, 7, undefined]]);
  });

  it("takes several hours together where there would be too many", () => {
    const grid = heatGrid([], start, after(24 * 28), 168);
    expect(grid.starts).toHaveLength(168);
    expect(grid.starts[1]).toEqual(after(4));
  });
});

describe("the time axis", () => {
  const hours = (count: number) => Array.from({ length: count }, (_, i) => after(i));

  it("has labels at whole hours, with the day where it begins", () => {
    expect(timeTicks(hours(9), 30, "UTC").map((tick) => `${tick.column} ${tick.text}`)).toEqual(["0 22:00", "2 22 Nov", "4 02:00", "6 04:00", "8 06:00"]);
  });

  it("has labels that never touch, however many hours there are", () => {
    for (const count of [1, 2, 6, 24, 48, 72, 168]) {
      for (const width of [8, 15, 31, 760]) {
        const columns = timeTicks(hours(count), width, "UTC").map((tick) => tick.column);
        for (const [i, column] of columns.slice(1).entries()) {
          expect((column - (columns[i] ?? 0)) * width).toBeGreaterThanOrEqual(48);
        }
      }
    }
    expect(timeTicks(hours(168), 8, "UTC").length).toBeGreaterThan(5);
  });
});

describe("the history of the console", () => {
  it("becomes means by bytes, in the middles of the buckets", () => {
    const history = create(HistorySchema, {
      classes: [
        {
          backend: "demo",
          class: "media",
          samples: [
            { at: timestampFromDate(start), buckets: [{ atLeast: 0, bytes: 300n }, { atLeast: 4, bytes: 100n }] },
            { at: timestampFromDate(after(1)), buckets: [] },
          ],
        },
      ],
    });
    expect(heatRowsFromApi(history)).toEqual([{ name: "media", samples: [{ at: start, heat: Math.SQRT2 }] }]);
    expect(bucketMiddle(2 ** 20)).toBe(2 ** 20);
  });

  it("names the backend where there are several", () => {
    const history = create(HistorySchema, { classes: [{ backend: "a", class: "media" }, { backend: "b", class: "media" }] });
    expect(heatRowsFromApi(history).map((row) => row.name)).toEqual(["a/media", "b/media"]);
  });
});

describe("the heat map", () => {
  const rows = [
    { name: "media", samples: [{ at: after(0), heat: 0.5 }, { at: after(1), heat: 120 }] },
    { name: "logs", samples: [] },
  ];
  const map = <HeatMap rows={rows} from={start} until={after(3)} timeZone="UTC" />;

  it("says of each class what was last known, and what its unit is", () => {
    const { container } = render(map);
    expect(screen.getByRole("img", { name: "Heat map: media last 120 accesses a day, logs without samples. The numbers are in the table." })).toBeTruthy();
    expect(screen.getByText("accesses a day of a group")).toBeTruthy();
    const titles = [...container.querySelectorAll(".picture-heat title")].map((title) => title.textContent);
    expect(titles).toContain("media, 21 Nov, 23:00: 120 accesses a day");
    expect(titles).toContain("logs, 21 Nov, 22:00: no sample");
  });

  it("is a table too", async () => {
    const user = userEvent.setup();
    render(map);
    const button = screen.getByRole("button", { name: "Show as a table" });
    await user.click(button);
    expect(button.getAttribute("aria-pressed")).toBe("true");
    const media = screen.getByRole("rowheader", { name: "media" }).closest("tr");
    expect([...(media?.querySelectorAll("td") ?? [])].map((cell) => cell.textContent)).toEqual(["0.5", "120", "-"]);
    await user.click(button);
    expect(screen.queryByRole("table")).toBeNull();
  });

  it("draws some of many classes, and more when asked", async () => {
    const user = userEvent.setup();
    const many = Array.from({ length: 45 }, (_, i) => ({ name: `class-${i}`, samples: [] }));
    const { container } = render(<HeatMap rows={many} from={start} until={after(2)} timeZone="UTC" mostRows={40} />);
    expect(within(container).queryByText("class-44")).toBeNull();
    await user.click(screen.getByRole("button", { name: "Show 5 more of 45 classes" }));
    expect(within(container).getAllByText("class-44").length).toBeGreaterThan(0);
    expect(screen.queryByRole("button", { name: /more of/ })).toBeNull();
  });

  it("is accessible as a picture and as a table", async () => {
    const user = userEvent.setup();
    const { container } = render(map);
    await expectAccessible(container);
    await user.click(screen.getByRole("button", { name: "Show as a table" }));
    await expectAccessible(container);
  });
});

import { describe, expect, it } from "vitest";

import { nodesOf, plans } from "./fixtures";
import { layOut, textWidth, type StripeGeometry } from "./stripe-geometry";
import { frameAt, keptAt, movesAway, placesOf, placeWords, type StripePlan } from "./stripe-picture";
import { frameSentence, totalSentence } from "./stripe-picture-words";

const named = Object.entries(plans).map(([name, plan]) => ({ name, plan }));

describe("frames", () => {
  it.each(named)("of $name add up to what the plan sends", ({ plan }) => {
    const end = frameAt(plan, plan.steps.length);
    expect(end.committed).toBe(true);
    for (const total of [sum(end.sent.values()), sum(end.received.values()), sum(end.arrows.map((arrow) => arrow.blocks)), end.blocksSent]) {
      expect(total).toBe(plan.blocksSent);
    }
    expect(frameAt(plan, 0)).toMatchObject({ index: 0, step: undefined, committed: false, blocksSent: 0, arrows: [] });
  });

  it.each(named)("of $name have all parity staged before the commit, or keep what is there", ({ plan }) => {
    const before = frameAt(plan, plan.steps.length - 1);
    expect(before.committed).toBe(false);
    if (movesAway(plan)) {
      expect(sum(before.stagedCells.values())).toBe(plan.cells.length);
      return;
    }
    for (const parity of plan.parities) {
      const there = [...(before.staged.get(parity.position) ?? []), ...keptAt(plan, parity).values()];
      expect(there.sort((a, b) => a - b)).toEqual(parity.newStripes);
    }
  });

  it("of a merge have no arrow at all", () => {
    for (const plan of [plans.merge, plans.mergeCopies, plans.wide]) {
      for (let index = 0; index <= plan.steps.length; index++) {
        expect(frameAt(plan, index).arrows).toEqual([]);
      }
    }
  });

  it("have the nodes that a plan goes through", () => {
    expect(placesOf(plans.throughProxy).map(placeWords)).toContain("the proxy");
    expect(placesOf(plans.copyToPool).map(placeWords).slice(-2)).toEqual(["node 4 of the new pool", "node 5 of the new pool"]);
    expect(placesOf(plans.merge).map(placeWords).slice(-2)).toEqual(["parity node 1", "parity node 2"]);
  });
});

describe("sentences", () => {
  it("say what there is before the first step", () => {
    expect(frameSentence(plans.mergeCopies, frameAt(plans.mergeCopies, 0))).toBe(
      "Before: 12 cells in 12 stripes of rep(3), a to l; 2 nodes hold a parity block of each.",
    );
    expect(frameSentence(plans.narrow, frameAt(plans.narrow, 0))).toBe("Before: 12 cells in 1 stripe of rs(12,2), a; 2 nodes hold a parity block of it.");
  });

  it("say the running total with its whole, and why there is none", () => {
    expect(totalSentence(plans.merge, frameAt(plans.merge, 2))).toBe("0 B over the network: every node adds up only what it already holds.");
    expect(totalSentence(plans.dropRow, frameAt(plans.dropRow, 1))).toBe("0 B over the network: no block is made, parity is only deleted.");
    expect(totalSentence(plans.widen, frameAt(plans.widen, 3))).toBe("3 of 9 blocks sent over the network so far.");
    expect(totalSentence(plans.widen, frameAt(plans.widen, 3), 65536)).toBe(
      "3 of 9 blocks sent over the network so far: 192 KiB of 576 KiB, 64 KiB each.",
    );
  });
});

describe("the layout", () => {
  const counts = Array.from({ length: 63 }, (_, i) => i + 2);

  it.each(named)("of $name has nothing over anything else", ({ plan }) => {
    expectNoOverlap(layOut(plan, nodesOf(plan)), plan);
  });

  it("has nothing over anything else from 2 to 64 columns, with short and long names", () => {
    for (const columns of counts) {
      const plan = mergeOf(columns);
      for (const nodes of [[], nodesOf(plan, "n"), nodesOf(plan, "storage.rack-17.example.org-")]) {
        expectNoOverlap(layOut(plan, nodes), plan);
      }
    }
  });

  it("counts parity blocks where they are too many to draw", () => {
    expect(layOut(mergeOf(64), []).chips.counted).toBe(true);
    expect(layOut(mergeOf(48), []).chips.counted).toBe(false);
  });

  it("keeps its size through all steps and leaves no room for arrows where there are none", () => {
    expect(layOut(plans.merge, []).tallyTop).toBeUndefined();
    expect(layOut(plans.widen, []).lanes.size).toBe(9);
  });

  it("shortens names of nodes in their middle", () => {
    const names = layOut(plans.merge, nodesOf(plans.merge, "storage.rack-17.example.org-")).boxes.map((box) => box.name);
    expect(names[0]).toBe("storage.…ple.org-1");
    expect(new Set(names).size).toBe(names.length);
  });
});

function expectNoOverlap(geometry: StripeGeometry, plan: StripePlan) {
  geometry.boxes.forEach((box, i) => {
    const next = geometry.boxes[i + 1];
    expect(box.left + box.width).toBeLessThanOrEqual(next?.left ?? geometry.width);
    if (box.name !== undefined && !box.upright) {
      expect(textWidth(box.name)).toBeLessThanOrEqual(box.width);
    }
    if (box.upright) {
      expect(textWidth(box.name ?? "")).toBeLessThanOrEqual(geometry.bodyTop - 16);
      expect(box.width).toBeGreaterThanOrEqual(14);
    }
  });
  expect(plan.rows * geometry.cellHeight).toBeLessThanOrEqual(geometry.bodyHeight);
  const lanes = [...geometry.lanes.values()];
  expect(new Set(lanes.map((lane) => lane.y)).size).toBe(lanes.length);
  expect(new Set(lanes.flatMap((lane) => [lane.fromX, lane.toX])).size).toBe(lanes.length * 2);
  for (const lane of lanes) {
    expect(lane.y + 8).toBeLessThanOrEqual(geometry.tallyTop ?? 0);
  }
  if (!geometry.chips.counted) {
    for (const parity of plan.parities) {
      const lines = Math.ceil(parity.newStripes.length / geometry.chips.inLine);
      expect(geometry.chips.newTop + lines * 21).toBeLessThanOrEqual(geometry.bodyHeight + 3);
    }
  }
}

/** rep(3) to rs(columns,2): one row of cells, each a stripe of its own. */
function mergeOf(columns: number): StripePlan {
  const old = Array.from({ length: columns }, (_, i) => i);
  return {
    ...plans.mergeCopies,
    columns,
    cells: old.map((column) => ({ row: 0, column, oldStripe: column, newStripe: 0 })),
    parities: [0, 1].map((row) => ({ position: columns + row, oldStripes: old, newStripes: [0] })),
    steps: [],
  };
}

function sum(numbers: Iterable<number>): number {
  return [...numbers].reduce((a, b) => a + b, 0);
}

import { fireEvent, render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";

import { expectAccessible } from "../testing/axe";
import { nodesOf, plans } from "./fixtures";
import { StripePicture } from "./StripePicture";

// Looking for what is not accessible takes as long as the machine lets it.
vi.setConfig({ testTimeout: 60_000 });

const drawing = (container: HTMLElement) => ({
  cells: (state: string) => container.querySelectorAll(`.picture-cell[data-state="${state}"]`).length,
  chips: (state: string) => container.querySelectorAll(`.picture-chip[data-state="${state}"]`).length,
  arrows: () => [...container.querySelectorAll(".picture-scroll .picture-arrow")],
  current: () => [...container.querySelectorAll(".picture-scroll .picture-arrow-count[data-now]")].map((arrow) => arrow.textContent),
  pulses: () => container.querySelectorAll(".picture-scroll .picture-pulse").length,
  read: () => container.querySelectorAll(".picture-scroll [data-read]").length,
});

describe("a merge", () => {
  it("turns old tint to new without one arrow", async () => {
    const user = userEvent.setup();
    const { container } = render(<StripePicture plan={plans.merge} nodes={nodesOf(plans.merge)} />);
    const picture = drawing(container);
    expect(picture.cells("old")).toBe(12);
    expect(picture.chips("old")).toBe(6);
    const next = screen.getByRole("button", { name: "Next" });

    await user.click(next);
    expect(screen.getByText("Parity node 1 makes its parity of new stripe 1 of 3 old parity blocks it already holds.")).toBeTruthy();
    expect([picture.cells("staged"), picture.pulses(), picture.read()]).toEqual([12, 1, 3]);

    await user.click(next);
    await user.click(next);
    expect([picture.cells("new"), picture.chips("new"), picture.chips("gone"), picture.pulses()]).toEqual([12, 2, 6, 0]);
    expect(picture.arrows()).toEqual([]);
    expect(screen.queryByText("blocks that cross the network")).toBeNull();
    expect(screen.getByText("0 B over the network: every node adds up only what it already holds.")).toBeTruthy();
    expect(next.getAttribute("aria-disabled")).toBe("true");
    await user.click(next);
    expect(screen.getByText("step 3 of 3")).toBeTruthy();
  });
});

describe("blocks that cross", () => {
  it("have an arrow with their count, and a running total", async () => {
    const user = userEvent.setup();
    const { container } = render(<StripePicture plan={plans.widen} nodes={nodesOf(plans.widen)} blockBytes={65536} />);
    const picture = drawing(container);
    await user.click(screen.getByRole("button", { name: "Next" }));
    expect(picture.current()).toEqual(["1 block"]);
    expect(screen.getByText("1 of 9 blocks sent over the network so far: 64 KiB of 576 KiB, 64 KiB each.")).toBeTruthy();
    expect(screen.getByRole("img", { name: /An arrow goes from column 2 \(node-2\) to parity node 1 \(node-6\): 1 block\./ })).toBeTruthy();

    await user.click(screen.getByRole("button", { name: "End" }));
    expect(picture.arrows()).toHaveLength(9);
    expect(picture.current()).toEqual([]);
    expect(screen.getByText("9 of 9 blocks sent over the network so far: 576 KiB of 576 KiB, 64 KiB each.")).toBeTruthy();
  });

  it("add up on the arrow between two nodes", () => {
    const { container } = render(<StripePicture plan={plans.throughProxy} start={plans.throughProxy.steps.length} />);
    const counts = [...container.querySelectorAll(".picture-arrow-count")].map((arrow) => arrow.textContent);
    expect(counts.filter((count) => count === "3 blocks")).toHaveLength(2);
    expect(screen.getAllByText("proxy")).toHaveLength(1);
  });

  it("to a new pool leave nothing behind", () => {
    const { container } = render(<StripePicture plan={plans.copyToPool} start={plans.copyToPool.steps.length} />);
    const picture = drawing(container);
    expect([picture.cells("gone"), picture.cells("new")]).toEqual([4, 0]);
    expect(within(container).getAllByText("1 cell")).toHaveLength(4);
  });
});

describe("another number of parity rows", () => {
  it("keeps the blocks of the other rows", () => {
    const { container } = render(<StripePicture plan={plans.dropRow} start={1} />);
    const picture = drawing(container);
    expect([picture.chips("new"), picture.chips("gone")]).toEqual([2, 1]);
    expect(screen.getAllByText("Parity of stripe a of rs(4,3), kept as that of stripe A of rs(4,2)")).toHaveLength(2);
    expect(screen.getByText("0 B over the network: no block is made, parity is only deleted.")).toBeTruthy();
  });

  it("makes only the new row", () => {
    const { container } = render(<StripePicture plan={plans.addRow} start={plans.addRow.steps.length - 1} />);
    const picture = drawing(container);
    expect([picture.chips("old"), picture.chips("staged"), picture.pulses()]).toEqual([2, 1, 1]);
  });
});

describe("the keyboard", () => {
  it("steps with the arrow keys, to the start and to the end", () => {
    render(<StripePicture plan={plans.widen} />);
    const key = (name: string) => fireEvent.keyDown(screen.getByRole("slider", { name: "Step" }), { key: name });
    key("ArrowLeft");
    expect(screen.getByText("before the first of 22 steps")).toBeTruthy();
    key("ArrowRight");
    key("ArrowRight");
    expect(screen.getByText("step 2 of 22")).toBeTruthy();
    key("ArrowLeft");
    expect(screen.getByText("step 1 of 22")).toBeTruthy();
    key("End");
    expect(screen.getByText("step 22 of 22")).toBeTruthy();
    key("ArrowRight");
    expect(screen.getByText("step 22 of 22")).toBeTruthy();
    key("Home");
    expect(screen.getByText("before the first of 22 steps")).toBeTruthy();
  });

  it("leaves the keys of the browser alone", () => {
    render(<StripePicture plan={plans.widen} />);
    fireEvent.keyDown(screen.getByRole("button", { name: "Next" }), { key: "ArrowRight", altKey: true });
    expect(screen.getByText("before the first of 22 steps")).toBeTruthy();
  });

  it("reaches every control, and the array itself to scroll it", async () => {
    const user = userEvent.setup();
    render(<StripePicture plan={plans.widen} />);
    const reached: (string | null)[] = [];
    for (let i = 0; i < 6; i++) {
      await user.tab();
      reached.push(document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? null);
    }
    expect(reached).toEqual(["Start", "Previous", "Next", "End", "Step", "Array of cells"]);
  });
});

it("says every step to those who do not see it", () => {
  const { container } = render(<StripePicture plan={plans.widen} start={10} />);
  const sentence = "Parity node 1 makes its parity of new stripe 1 of 2 old parity blocks it already holds and 3 blocks it was sent.";
  expect(container.querySelector("[aria-live=polite]")?.textContent).toContain(sentence);
  expect(screen.getByRole("slider", { name: "Step" }).getAttribute("aria-valuetext")).toBe(`10 of 22: ${sentence}`);
  expect(screen.getByRole("img", { name: /What is added is marked at parity node 1\./ })).toBeTruthy();
});

it("stays within the steps of a plan that is replaced by a shorter one", () => {
  const { rerender } = render(<StripePicture plan={plans.widen} start={22} />);
  rerender(<StripePicture plan={plans.merge} />);
  expect(screen.getByText("step 3 of 3")).toBeTruthy();
});

it.each([plans.merge, plans.throughProxy])("is accessible: $from to $to", async (plan) => {
  const { container } = render(<StripePicture plan={plan} nodes={nodesOf(plan)} start={1} />);
  await expectAccessible(container);
});

import { render, screen } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";

import { Amount } from "./Amount";
import { ProgressBar } from "./ProgressBar";
import { parseScheme } from "./scheme";
import { SchemeShape } from "./SchemeShape";
import { knownStates } from "./state";
import { StateMark } from "./StateMark";
import { expectAccessible } from "../testing/axe";

// Looking for what is not accessible takes as long as the machine lets it.
vi.setConfig({ testTimeout: 60_000 });

describe("a scheme", () => {
  it.each([
    { code: "rs(4,2)", squares: 6, text: "4+2", name: "rs(4,2): 4 data and 2 parity blocks, can lose 2 nodes" },
    { code: "rs(12,1)", squares: 13, text: "12+1", name: "rs(12,1): 12 data and 1 parity blocks, can lose 1 node" },
    { code: "rs(64,8)", squares: 72, text: "64+8", name: "rs(64,8): 64 data and 8 parity blocks, can lose 8 nodes" },
    { code: "rep(3)", squares: 3, text: "rep 3", name: "rep(3): 3 copies, can lose 2 nodes" },
    { code: "rep(1)", squares: 1, text: "rep 1", name: "rep(1): 1 copy, can lose no node" },
    { code: "rs(4,0)", squares: 4, text: "4+0", name: "rs(4,0): 4 data and 0 parity blocks, can lose no node" },
  ])("$code is $squares squares and a number", ({ code, squares, text, name }) => {
    const { container } = render(<SchemeShape scheme={code} />);
    expect(container.querySelectorAll("rect")).toHaveLength(squares);
    expect(screen.getByText(text)).toBeTruthy();
    expect(screen.getByRole("img", { name })).toBeTruthy();
  });

  it("that is only a name is that name", () => {
    render(<SchemeShape scheme="archive" />);
    expect(screen.getByText("archive")).toBeTruthy();
    expect(screen.queryByRole("img")).toBeNull();
  });

  it("is read with spaces, and never from something else", () => {
    expect(parseScheme(" rs( 4, 2 ) ")).toEqual({ data: 4, parity: 2, copies: false });
    for (const text of ["", "rs(4)", "rep(0)", "rs(0,2)", "rs(4,2)x", "rep(3,1)", "rs(-4,2)"]) {
      expect(parseScheme(text)).toBeUndefined();
    }
  });
});

describe("a state", () => {
  it("is an icon and its word, whatever the word", () => {
    const { container } = render(<StateMark state="Unapproved" word="waits for approval" why="cost above 10 GiB" />);
    expect(container.querySelector("svg")?.getAttribute("aria-hidden")).toBe("true");
    expect(screen.getByText("waits for approval").getAttribute("title")).toBe("cost above 10 GiB");
    render(<StateMark state="levitating" />);
    expect(screen.getByText("levitating").getAttribute("data-sign")).toBe("dot");
  });

  it("has a shape that says without colour how bad it is", () => {
    const tonesOf = new Map<string, Set<string>>();
    for (const state of knownStates) {
      const { container, unmount } = render(<StateMark state={state} />);
      const mark = container.querySelector<HTMLElement>(".picture-state");
      const sign = mark?.dataset.sign ?? "";
      const tone = mark?.dataset.tone ?? "";
      tonesOf.set(sign, (tonesOf.get(sign) ?? new Set()).add(tone));
      unmount();
    }
    for (const sign of ["check", "moving", "cross"]) {
      expect(tonesOf.get(sign)?.size).toBe(1);
    }
  });
});

describe("progress", () => {
  const bar = () => screen.getByRole("progressbar");

  it("says amounts, rate and the time left with its range", () => {
    render(
      <ProgressBar
        label="media-cold-7"
        done={1n << 30n}
        total={3n << 30n}
        bytesPerSecond={40n << 20n}
        secondsLeft={14 * 60}
        secondsLeftLow={11 * 60}
        secondsLeftHigh={19 * 60}
      />,
    );
    expect(bar().getAttribute("aria-label")).toBe("media-cold-7");
    expect(bar().getAttribute("aria-valuenow")).toBe("33");
    expect(bar().getAttribute("aria-valuetext")).toBe("1.0 GiB of 3.0 GiB (33 %), at 40 MiB/s, about 14 min (11-19) left");
    expect(screen.getByText("1.0 GiB of 3.0 GiB (33 %)")).toBeTruthy();
    expect(screen.getByText("at 40 MiB/s, about 14 min (11-19) left")).toBeTruthy();
  });

  it("never says 100 % of what is not done", () => {
    render(<ProgressBar label="job" done={999_999n} total={1_000_000n} secondsLeft={0.2} />);
    expect(bar().getAttribute("aria-valuenow")).toBe("99");
    expect(bar().getAttribute("aria-valuetext")).toBe("977 KiB of 977 KiB (99 %), about 1 s left");
  });

  it("says that nothing moves", () => {
    render(<ProgressBar label="job" done={1n << 20n} total={2n << 20n} bytesPerSecond={0n} />);
    expect(screen.getByText("at 0 B/s, estimating the time left")).toBeTruthy();
  });

  it("says when the time left is not known", () => {
    render(<ProgressBar label="job" done={0} total={10} />);
    expect(screen.getByText("estimating the time left")).toBeTruthy();
  });

  it("says why it is paused, in place of a time", () => {
    const { container } = render(<ProgressBar label="job" done={1} total={10} paused="window 22-06" secondsLeft={60} />);
    expect(screen.getByText("paused: window 22-06")).toBeTruthy();
    expect(container.querySelector("[data-paused]")).toBeTruthy();
  });

  it("says that it is estimated while nothing is counted yet, and not that it is done", () => {
    render(<ProgressBar label="job" done={0} total={0} counting />);
    const bar = screen.getByRole("progressbar", { name: "job" });
    expect(bar.getAttribute("aria-valuetext")).toBe("estimating how much there is to do");
    expect(bar.getAttribute("aria-valuenow")).toBeNull();
  });

  it("says once that it is paused", () => {
    const { rerender } = render(<ProgressBar label="job" done={1} total={10} paused="Paused by a person; go on with it" />);
    expect(screen.getByText("Paused by a person; go on with it")).toBeTruthy();
    rerender(<ProgressBar label="job" done={1} total={10} paused="" />);
    expect(screen.getByText("paused")).toBeTruthy();
  });

  it("has nothing to say about time when it is done, or when there is nothing to do", () => {
    render(<ProgressBar label="job" done={10} total={10} secondsLeft={3} paused="window" />);
    expect(bar().getAttribute("aria-valuetext")).toBe("10 B of 10 B (100 %)");
    render(<ProgressBar label="none" done={0} total={0} />);
    expect(screen.getByRole("progressbar", { name: "none" }).getAttribute("aria-valuetext")).toBe("nothing to do");
  });

  it("stays within its track", () => {
    const { container } = render(<ProgressBar label="job" done={20} total={10} amount={(done, total) => `${done} of ${total} groups`} />);
    expect(container.querySelector<HTMLElement>(".picture-progress-fill")?.style.width).toBe("100%");
    expect(screen.getByText("20 of 10 groups (100 %)")).toBeTruthy();
  });
});

it("says bytes in words, and exactly for whoever points at them", () => {
  render(<Amount bytes={1_288_490_188n} />);
  expect(screen.getByText("1.2 GiB").getAttribute("title")).toBe("1,288,490,188 B");
});

it("is accessible", async () => {
  const { container } = render(
    <div>
      <SchemeShape scheme="rs(4,2)" />
      <StateMark state="up" />
      <ProgressBar label="job" done={1} total={10} />
      <Amount bytes={10} />
    </div>,
  );
  await expectAccessible(container);
});

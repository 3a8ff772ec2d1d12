import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import { expectAccessible } from "../../testing/axe";
import { morning, node } from "../../testing/fixtures";
import { without } from "../../testing/refusals";
import { renderPage, said, type Answers } from "../../testing/render";

const idle = { backend: "local", state: "idle", pass: 0n, classes: [] };
const underWay = { backend: "local", state: "running", pass: 3n, groupsTotal: 4n, groupsDone: 1n, objectsMoved: 9n, objectsSpliced: 7n, bytesTotal: 100n, bytesDone: 25n, bytesFreed: 50n, etaSeconds: 240 };
const dead = { class: "cold", groups: 2n, bytes: 3n << 20n, deadBytes: 2n << 20n, deadAtMostPercent: 1000 };

/** A console whose compaction is steered. */
function steered(first: object): { answers: Answers; asked: string[] } {
  let compaction = first;
  const asked: string[] = [];
  const to = (what: string, next: object) => ({ backend }: { backend: string }) => {
    asked.push(`${what} ${backend}`);
    compaction = next;
    return { compaction, said: `the compaction of ${backend} is ${what}` };
  };
  const answers: Answers = {
    watchNodes: (_, context) => said(context.signal, { whole: true, nodes: [node] }),
    getScrubs: () => ({}),
    getCompactions: () => ({ compactions: [compaction] }),
    startCompaction: to("begun", underWay),
    pauseCompaction: to("paused", { ...underWay, state: "paused" }),
    resumeCompaction: to("resumed", underWay),
  };
  return { answers, asked };
}

describe("the dead space of small objects", () => {
  it("is compacted, paused and gone on with", async () => {
    const { answers, asked } = steered(idle);
    renderPage("/nodes", answers);
    const user = userEvent.setup();
    await screen.findByText(/local: idle\. Nothing was compacted yet\./);
    await user.click(screen.getByRole("button", { name: "Compact now" }));
    await screen.findByText("the compaction of local is begun");
    const bar = await screen.findByRole("progressbar", { name: "Compaction of local" });
    expect(bar.getAttribute("aria-valuetext")).toBe("25 B of 100 B (25 %), about 4 min left");
    await expectAccessible();
    await user.click(screen.getByRole("button", { name: "Pause compaction" }));
    await screen.findByText(/local: paused; 9 objects moved, 7 of them on their nodes, out of 1 of 4 groups, 50 B freed\./);
    await waitFor(() => expect(bar.getAttribute("aria-valuetext")).toBe("25 B of 100 B (25 %), paused"));
    await user.click(screen.getByRole("button", { name: "Resume compaction" }));
    await screen.findByText(/local: running/);
    expect(asked).toEqual(["begun local", "paused local", "resumed local"]);
  });

  it("says what may be dead of a class, and while it looks", async () => {
    renderPage("/nodes", steered({ ...underWay, groupsTotal: 0n, bytesTotal: 0n, looked: morning, classes: [dead, { ...dead, class: "gone", deadAtMostPercent: 0 }] }).answers);
    await screen.findByText(/2.0 MiB of 3.0 MiB dead \(200 % of what lives\) in 2 groups; it is never compacted/);
    await screen.findByText(/there is no such class any more/);
    expect(screen.getByRole("progressbar", { name: "Compaction of local" }).getAttribute("aria-valuetext")).toBe("estimating how much there is to do");
    await expectAccessible();
  });

  it("is of no gateway of an earlier release", async () => {
    renderPage("/nodes", { ...steered(idle).answers, getCompactions: () => ({}) });
    await screen.findByText("No gateway tells of a compaction.");
  });

  it("says why it was refused", async () => {
    const refused = (): never => {
      throw without("pause");
    };
    renderPage("/nodes", { ...steered(idle).answers, pauseCompaction: refused });
    await userEvent.setup().click(await screen.findByRole("button", { name: "Pause compaction" }));
    await screen.findByText("You lack the verb pause");
  });
});

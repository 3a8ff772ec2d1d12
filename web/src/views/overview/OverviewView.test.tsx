import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import { Safety } from "../../gen/console/v1/overview_pb";
import { expectAccessible } from "../../testing/axe";
import { morning, overview } from "../../testing/fixtures";
import { silent, without } from "../../testing/refusals";
import { renderPage, said, type Answers } from "../../testing/render";

const history: Answers["getHistory"] = () => ({ classes: [] });

describe("the overview", () => {
  it("answers whether data is safe, what it costs and what moves", async () => {
    renderPage("/", { getHistory: history, watchOverview: (_, context) => said(context.signal, overview) });
    expect(await screen.findByRole("heading", { level: 1, name: "All 1,200 objects can lose 2 nodes." })).toBeDefined();
    expect(screen.getByText("184 MiB", { selector: "span" })).toBeDefined();
    expect(screen.getByText("1.84x: stored bytes of each protected byte")).toBeDefined();
    expect(screen.getByText("the price of 116 MiB of 300 MiB, by the price table")).toBeDefined();
    const bar = screen.getByRole("progressbar", { name: "Progress of media-rs4-2-1" });
    expect(bar.getAttribute("aria-valuetext")).toContain("10 MiB of 40 MiB (25 %)");
    expect(bar.getAttribute("aria-valuetext")).toContain("about 14 min (11-19) left");
    expect(screen.getByText("3 accesses a day")).toBeDefined();
    await expectAccessible();
  });

  it("says what to do first with nothing stored", async () => {
    const empty = { ...overview, safety: Safety.EMPTY, safetyLine: "Nothing is stored.", objects: 0n, classes: [], moving: [], movingTotal: 0n, savedBytes: 0n, storedBytes: 0n };
    renderPage("/", { getHistory: history, watchOverview: (_, context) => said(context.signal, empty) });
    expect(await screen.findByText("Nothing is stored yet")).toBeDefined();
    expect(screen.getByText(/restripe put/)).toBeDefined();
    await expectAccessible();
  });

  it("tells what users stored from what pads it", async () => {
    const padded = { ...overview, protectedBytes: 80n << 20n, paddingBytes: 20n << 20n };
    renderPage("/", { getHistory: history, watchOverview: (_, context) => said(context.signal, padded) });
    expect(await screen.findByText("what users stored; 20 MiB more of padding fill up the last cells of objects")).toBeDefined();
  });

  it("claims nothing while a backend does not answer", async () => {
    const line = "Unknown since 08:00:00 UTC: no gateway of local answers; last: all 1,200 objects can lose 2 nodes.";
    const unknown = {
      ...overview,
      safety: Safety.UNSPECIFIED,
      lastSafety: Safety.SAFE,
      unknownSince: morning,
      safetyLine: line,
      backends: [{ backend: "local", state: "unknown", line: "No gateway answers." }],
    };
    const { container } = renderPage("/", { getHistory: history, watchOverview: (_, context) => said(context.signal, unknown) });
    expect(await screen.findByRole("heading", { level: 1, name: line })).toBeDefined();
    expect(container.querySelector('[data-safety="unknown"]')).not.toBeNull();
    expect(screen.getByText(/None of this is known to hold since/)).toBeDefined();
    expect(screen.getByText(/\(as last heard\)/)).toBeDefined();
    expect(screen.queryByText(/In the last/)).toBeNull();
    await expectAccessible();
  });

  it("names the nodes that do not serve, and what becomes of them", async () => {
    const harmed = {
      ...overview,
      safety: Safety.UNPROTECTED,
      safetyLine: "3 groups miss blocks. The loss of one more node may lose data now.",
      nodes: { total: 14, byState: { up: 12, down: 1, out: 1 }, bad: [{ backend: "local", name: "n7", state: "out", since: morning }, { backend: "local", name: "n9", state: "down", since: morning, givenUpAt: morning }] },
    };
    const { container } = renderPage("/", { getHistory: history, watchOverview: (_, context) => said(context.signal, harmed) });
    const list = await screen.findByRole("list", { name: "Nodes that do not serve" });
    expect(list.textContent).toMatch(/n7 since .*n9 since .*; if it stays silent it is given up at .*, and its blocks are rebuilt on other nodes/);
    expect(container.querySelector('[data-safety="unprotected"]')).not.toBeNull();
    await expectAccessible();
  });

  it("shows a catalog that is behind its nodes as the worst, and says what settles it", async () => {
    const line = "The catalog of local is behind what its nodes hold: nothing is deleted until somebody decides. See `restripe catalog lineage`.";
    const behind = { ...overview, safety: Safety.BEHIND, safetyLine: line };
    const { container } = renderPage("/", { getHistory: history, watchOverview: (_, context) => said(context.signal, behind) });
    expect(await screen.findByRole("heading", { name: line })).toBeDefined();
    expect(container.querySelector('[data-safety="catalog behind"]')).not.toBeNull();
    await expectAccessible();
  });

  it("keeps its layout while it loads", async () => {
    renderPage("/", { getHistory: history, watchOverview: (_, context) => said(context.signal) });
    expect(await screen.findByRole("status", { name: "Loading the overview" })).toBeDefined();
    await expectAccessible();
  });

  it("names the verb that is missing", async () => {
    renderPage("/", {
      getHistory: history,
      watchOverview: () => {
        throw without("get");
      },
    });
    expect(await screen.findByText("You lack the verb get for the overview")).toBeDefined();
    await expectAccessible();
  });

  it("says since when a source has been silent", async () => {
    const stale = { ...overview, sources: [{ name: "backend local", staleSince: morning, error: "no gateway answers" }] };
    renderPage("/", { getHistory: history, watchOverview: (_, context) => said(context.signal, stale) });
    expect((await screen.findByText(/backend local has not answered since/)).textContent).toContain("no gateway answers");
    await expectAccessible();
  });

  it("keeps the last picture when the console is lost, says so, and is asked again", async () => {
    let asked = 0;
    let answer = (): void => undefined;
    const answering = new Promise<void>((resolve) => (answer = resolve));
    renderPage("/", {
      getHistory: history,
      watchOverview: async function* (_, context) {
        if (++asked === 1) {
          yield overview;
          throw silent();
        }
        await answering;
        yield* said(context.signal, { ...overview, safetyLine: "All is well again." });
      },
    });
    expect(await screen.findByText("Disconnected from the console")).toBeDefined();
    expect(screen.getByRole("heading", { level: 1, name: "All 1,200 objects can lose 2 nodes." })).toBeDefined();
    await expectAccessible();
    await userEvent.click(screen.getByRole("button", { name: "Ask now" }));
    answer();
    expect(await screen.findByRole("heading", { level: 1, name: "All is well again." })).toBeDefined();
    expect(screen.queryByText("Disconnected from the console")).toBeNull();
  });

  it("has every running job in the tray", async () => {
    const draining = { backend: "local", name: "n3", state: "draining", drain: { slotsTotal: 56n, slotsLeft: 14n, etaSeconds: 30 } };
    renderPage("/", {
      getHistory: history,
      watchOverview: (_, context) => said(context.signal, overview),
      watchNodes: (_, context) => said(context.signal, { whole: true, nodes: [draining] }),
      getScrubs: () => ({}),
      getCompactions: () => ({
        compactions: [
          { backend: "local", state: "running", groupsTotal: 4n, bytesTotal: 100n, bytesDone: 25n },
          { backend: "other", state: "running" },
        ],
      }),
    });
    await userEvent.click(await screen.findByRole("button", { name: "Jobs: 1 transition, 1 node being emptied" }));
    await waitFor(() => expect(screen.getByRole("progressbar", { name: "Emptying of n3" }).getAttribute("aria-valuetext")).toContain("42 slots of 56 slots moved away"));
    await waitFor(() => expect(screen.getByRole("progressbar", { name: "Compaction of local" }).getAttribute("aria-valuetext")).toContain("25 B of 100 B"));
    expect(screen.queryByRole("progressbar", { name: "Compaction of other" })).toBeNull();
    await expectAccessible();
  });
});

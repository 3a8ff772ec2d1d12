import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { Code, ConnectError } from "@connectrpc/connect";

import { expectAccessible } from "../../testing/axe";
import { node, overview } from "../../testing/fixtures";
import { renderPage, said, type Answers } from "../../testing/render";

const none = { backend: "local", state: "none" };
const underWay = { backend: "local", state: "running", number: 1n, bytesPerSecond: 8n << 20n, planned: true, bytesTotal: 100n << 20n, bytesMoved: 25n << 20n, slotsMoved: 4n, etaSeconds: 240 };
const plan = {
  said: "75 MiB in 12 slots would be moved, which takes 10 s at 8 MiB/s",
  bytes: 75n << 20n,
  slots: 12n,
  nodes: [
    { name: "n1", bytesBefore: 90n << 20n, bytesAfter: 60n << 20n, fairBytes: 60n << 20n },
    { name: "n9", bytesBefore: 0n, bytesAfter: 55n << 20n, fairBytes: 60n << 20n, note: "its store is nearly full" },
  ],
};

/** The request for a node in words. */
function inWords({ node: of, address, failureDomain, spare, balance }: { node?: { name: string }; address: string; failureDomain: string; spare: boolean; balance: boolean }): string {
  return `${of?.name ?? ""} ${address} ${failureDomain}${spare ? " spare" : ""}${balance ? " balance" : ""}`;
}

/** A console whose balance is steered and that nodes are added to. */
function steered(first: object): { answers: Answers; asked: string[] } {
  let balance = first;
  const asked: string[] = [];
  const to = (what: string, next: object) => ({ backend, bytesPerSecond }: { backend: string; bytesPerSecond?: bigint }) => {
    asked.push(`${what} ${backend}${bytesPerSecond === undefined ? "" : ` ${bytesPerSecond}`}`);
    balance = next;
    return { balance, said: `balance 1 of ${backend} is ${what}` };
  };
  const answers: Answers = {
    watchOverview: (_, context) => said(context.signal, overview),
    watchNodes: (_, context) => said(context.signal, { whole: true, nodes: [node] }),
    getScrubs: () => ({}),
    getCompactions: () => ({}),
    getBalances: () => ({ balances: [balance] }),
    planBalance: () => plan,
    startBalance: to("running", underWay),
    pauseBalance: to("paused", { ...underWay, state: "paused" }),
    resumeBalance: to("running", underWay),
    cancelBalance: to("cancelled", { ...underWay, state: "cancelled" }),
    planAddNode: (wanted) => {
      if (wanted.address === "nowhere:1") throw new ConnectError("no agent of node n9 answers at nowhere:1", Code.Unavailable);
      asked.push(`look at ${inWords(wanted)}`);
      return wanted.balance ? { said: "n9 can be added", plan } : { said: "n9 can be added; it would take new groups, nothing more" };
    },
    addNode: (wanted) => {
      asked.push(`add ${inWords(wanted)}`);
      return { said: `${wanted.node?.name ?? ""} is a member` };
    },
  };
  return { answers, asked };
}

describe("the balance of nodes", () => {
  it("begins after a look at what it moves, is paused, gone on with and cancelled", async () => {
    const { answers, asked } = steered(none);
    renderPage("/nodes", answers);
    const user = userEvent.setup();
    await screen.findByText("local: nodes were not balanced yet.");
    await user.click(await screen.findByRole("button", { name: "Balance…" }));
    const dialog = await screen.findByRole("dialog", { name: "Balance local" });
    await within(dialog).findByText(/75 MiB in 12 slots would be moved/);
    await within(dialog).findByText("n9, its store is nearly full");
    const rate = within(dialog).getByRole("textbox", { name: "At most, in MiB/s" });
    expect((rate as HTMLInputElement).value).toBe("32");
    await user.clear(rate);
    await user.type(rate, "8");
    await expectAccessible();
    await user.click(within(dialog).getByRole("button", { name: "Start balance" }));
    const bar = await screen.findByRole("progressbar", { name: "Balance of local" });
    await waitFor(() => expect(bar.getAttribute("aria-valuetext")).toBe("25 MiB of 100 MiB (25 %), about 4 min left"));
    await user.click(screen.getByRole("button", { name: "Pause balance" }));
    await waitFor(() => expect(bar.getAttribute("aria-valuetext")).toBe("25 MiB of 100 MiB (25 %), paused"));
    await user.click(await screen.findByRole("button", { name: "Resume balance" }));
    await user.click(await screen.findByRole("button", { name: "Change rate…" }));
    const rates = await screen.findByRole("dialog", { name: "Rate of the balance of local" });
    await user.click(within(rates).getByRole("button", { name: "Set rate" }));
    await user.click(await screen.findByRole("button", { name: "Cancel balance" }));
    await screen.findByText(/balance 1 is cancelled; 25 MiB moved in 4 slots, at 8.0 MiB\/s at most\./);
    expect(asked).toEqual(["running local 8388608", "paused local", "running local", "running local 8388608", "cancelled local"]);
  });

  it("says what it waits for, and is of no gateway of an earlier release", async () => {
    renderPage("/nodes", steered({ ...underWay, planned: false, waits: "node n2 does not answer" }).answers);
    await screen.findByText(/waits: node n2 does not answer/i);
    expect(screen.getByRole("progressbar", { name: "Balance of local" }).getAttribute("aria-valuetext")).toMatch(/^estimating how much there is to do/);
  });

  it("is not told of by an earlier release", async () => {
    renderPage("/nodes", { ...steered(none).answers, getBalances: () => ({}) });
    await screen.findByText("No gateway tells of a balance.");
  });
});

describe("a node that is added", () => {
  it("is looked at first, and again where something is changed", async () => {
    const { answers, asked } = steered(none);
    renderPage("/nodes", answers);
    const user = userEvent.setup();
    const open = await screen.findByRole("button", { name: "Add a node…" });
    await waitFor(() => expect(open.getAttribute("aria-disabled")).toBe("false"));
    await user.click(open);
    const dialog = await screen.findByRole("dialog", { name: "Add a node" });
    await user.type(within(dialog).getByRole("textbox", { name: "Name" }), "n9");
    const address = within(dialog).getByRole("textbox", { name: "Address of its agent, host:port" });
    await user.type(address, "nowhere:1");
    await user.click(within(dialog).getByRole("button", { name: "See what that does" }));
    await within(dialog).findByText(/no agent of node n9 answers at nowhere:1/i);
    expect(within(dialog).queryByRole("button", { name: "Add node" })).toBeNull();
    await user.clear(address);
    await user.type(address, "10.0.0.9:7400");
    await user.click(within(dialog).getByRole("button", { name: "See what that does" }));
    await within(dialog).findByText(/it would take new groups, nothing more/);
    await user.click(within(dialog).getByRole("radio", { name: /blocks of other nodes are moved to it/ }));
    await user.type(within(dialog).getByRole("textbox", { name: "Failure domain" }), "rack 3");
    await user.click(within(dialog).getByRole("button", { name: "See what that does" }));
    await within(dialog).findByText("n9 can be added.");
    await within(dialog).findByText(/75 MiB in 12 slots would be moved/);
    await expectAccessible();
    await user.click(within(dialog).getByRole("button", { name: "Add node" }));
    await screen.findByText("n9 is a member");
    expect(asked).toEqual(["look at n9 10.0.0.9:7400 ", "look at n9 10.0.0.9:7400 rack 3 balance", "add n9 10.0.0.9:7400 rack 3 balance"]);
  });

  it("is not filled where it is a spare", async () => {
    const { answers, asked } = steered(none);
    renderPage("/nodes", answers);
    const user = userEvent.setup();
    const open = await screen.findByRole("button", { name: "Add a node…" });
    await waitFor(() => expect(open.getAttribute("aria-disabled")).toBe("false"));
    await user.click(open);
    const dialog = await screen.findByRole("dialog", { name: "Add a node" });
    await user.click(within(dialog).getByRole("radio", { name: /blocks of other nodes are moved to it/ }));
    await user.click(within(dialog).getByRole("checkbox", { name: /A spare/ }));
    await user.type(within(dialog).getByRole("textbox", { name: "Name" }), "n9");
    await user.type(within(dialog).getByRole("textbox", { name: "Address of its agent, host:port" }), "a:1");
    await user.click(within(dialog).getByRole("button", { name: "See what that does" }));
    await within(dialog).findByText(/it would take new groups/);
    expect(asked).toEqual(["look at n9 a:1  spare"]);
  });
});

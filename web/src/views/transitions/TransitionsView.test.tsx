import { Code, ConnectError } from "@connectrpc/connect";
import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";

import { expectAccessible } from "../../testing/axe";
import { node, transition } from "../../testing/fixtures";
import { silent, without } from "../../testing/refusals";
import { everyVerb, renderPage, said, type Answers } from "../../testing/render";

const list = (...transitions: (typeof transition)[]): Answers => ({
  watchOverview: (_, context) => said(context.signal),
  watchTransitions: (_, context) => said(context.signal, { whole: true, transitions }),
  getTransition: ({ name }) => ({ transition: { ...transition, name }, explanation: "Each parity node adds the copies it holds." }),
});

describe("transitions", () => {
  it("are listed, filtered and gone through by keys, and open beside the list", async () => {
    const many = Array.from({ length: 200 }, (_, i) => ({ ...transition, name: `media-${i}` }));
    const { location } = renderPage("/transitions", list(...many));
    const grid = await screen.findByRole("grid", { name: "transitions" });
    expect(grid.getAttribute("aria-rowcount")).toBe("201");
    expect(within(grid).getAllByRole("row").length).toBeLessThan(60);
    await userEvent.type(screen.getByRole("textbox", { name: "Filter transitions" }), "media-17");
    await waitFor(() => expect(within(grid).getAllByRole("row").length).toBe(12));
    within(grid).getAllByRole("row")[1]?.focus();
    await userEvent.keyboard("{ArrowDown}{Enter}");
    expect(await screen.findByRole("heading", { level: 2, name: "media-170" })).toBeDefined();
    expect(location()).toBe("/transitions?name=media-170");
    expect(await screen.findByText("Each parity node adds the copies it holds.")).toBeDefined();
    await expectAccessible();
  });

  it("say what the nodes do while one runs, the busiest first", async () => {
    const rates = (read: bigint) => ({ read, sent: 0n, written: 0n });
    const nodes = [
      { ...node, backend: transition.backend, name: "n1", rates: rates(1n << 20n) },
      { ...node, backend: transition.backend, name: "n2", rates: rates(3n << 20n) },
      { ...node, backend: transition.backend, name: "n3", rates: rates(0n) },
      { ...node, backend: "another", name: "n4", rates: rates(9n << 20n) },
    ];
    renderPage("/transitions?name=media-1", {
      ...list({ ...transition, name: "media-1", state: "Running" }),
      getTransition: ({ name }) => ({ transition: { ...transition, name, state: "Running" } }),
      watchNodes: (_, context) => said(context.signal, { whole: true, nodes }),
    });
    const links = async () => (await screen.findAllByRole("link", { name: /^n[0-9]$/ })).map((link) => link.textContent);
    expect(await links()).toEqual(["n2", "n1"]);
    expect(screen.getByRole("row", { name: "n2 3.0 MiB/s 0 B/s 0 B/s" })).toBeDefined();
    expect(screen.getByText(/Less busy: 1 node\./)).toBeDefined();
    await expectAccessible();
  });

  it("say what taking one back would cost before it is asked for", async () => {
    const ended = { ...transition, name: "media-1", state: "Done", ended: transition.created };
    const rollback = vi.fn(() => ({ said: "media-1-back is made" }));
    renderPage("/transitions?name=media-1", {
      ...list(ended),
      getTransition: () => ({ transition: ended }),
      planRollback: () => ({ lines: ["would take 7 groups", "  sends 3.0 MiB"] }),
      rollbackTransition: rollback,
    });
    await userEvent.click(await screen.findByRole("button", { name: "Roll back…" }));
    const dialog = await screen.findByRole("dialog");
    expect(await within(dialog).findByText(/would take 7 groups\s+sends 3.0 MiB/)).toBeDefined();
    expect(rollback).not.toHaveBeenCalled();
    await userEvent.type(within(dialog).getByRole("textbox", { name: "Why it is taken back" }), "too slow");
    await userEvent.type(within(dialog).getByRole("textbox", { name: "Type media-1 to confirm" }), "media-1");
    await userEvent.click(within(dialog).getByRole("button", { name: "Roll back transition" }));
    await waitFor(() => expect(rollback).toHaveBeenCalledOnce());
  });

  it("are sorted by the column that is chosen, which is remembered like those that are shown", async () => {
    renderPage("/transitions", list({ ...transition, name: "b" }, { ...transition, name: "a" }));
    const grid = await screen.findByRole("grid", { name: "transitions" });
    await userEvent.click(within(grid).getByRole("button", { name: "Name" }));
    expect(within(grid).getAllByRole("row").map((row) => row.dataset.key)).toEqual([undefined, "a", "b"]);
    await userEvent.click(screen.getByRole("button", { name: "Columns" }));
    await userEvent.click(await screen.findByRole("checkbox", { name: "Class" }));
    expect(within(grid).queryByRole("button", { name: "Class" })).toBeNull();
    expect(localStorage.getItem("restripe.columns.transitions")).toContain('"class":false');
    localStorage.clear();
  });

  it("say once why one has not begun", async () => {
    const waiting = { ...transition, name: "media-1", state: "Waiting", stateWhy: "waits for the window at 22:00", progress: undefined };
    renderPage("/transitions?name=media-1", { ...list(), getTransition: () => ({ transition: waiting }) });
    await screen.findByRole("heading", { level: 2, name: "media-1" });
    expect(screen.getAllByText(/waits for the window at 22:00/i).length).toBe(1);
  });

  it("say what to do when there is none", async () => {
    renderPage("/transitions", list());
    expect(await screen.findByText("Nothing is moving")).toBeDefined();
    expect(screen.getByText(/restripe transition start/)).toBeDefined();
    await expectAccessible();
  });

  it("keep their place while they load", async () => {
    renderPage("/transitions", { ...list(), watchTransitions: (_, context) => said(context.signal) });
    expect(await screen.findByRole("status", { name: "Loading transitions" })).toBeDefined();
  });

  it("name the verb that is missing", async () => {
    renderPage("/transitions", {
      ...list(),
      watchTransitions: () => {
        throw without("get");
      },
    });
    expect(await screen.findByText("You lack the verb get for transitions")).toBeDefined();
    await expectAccessible();
  });

  it("stay on show when the console is lost, which is said", async () => {
    renderPage("/transitions", {
      ...list(),
      watchTransitions: async function* () {
        yield await Promise.resolve({ whole: true, transitions: [transition] });
        throw silent();
      },
    });
    expect(await screen.findByText(/Not up to date/)).toBeDefined();
    expect(screen.getByRole("grid", { name: "transitions" })).toBeDefined();
  });
});

describe("one transition", () => {
  it("shows what was predicted beside what was measured", async () => {
    renderPage("/transitions?name=media-rs4-2-1", list(transition));
    const table = await screen.findByRole("table");
    expect(within(table).getByRole("row", { name: "Sent over the network 0 B 0 B 0 B" })).toBeDefined();
    expect(within(table).getByRole("row", { name: "Read from stores 120 MiB 30 MiB 30 MiB" })).toBeDefined();
    await expectAccessible();
  });

  it("is paused, and says what was done", async () => {
    const pause = vi.fn(() => ({ transition: { ...transition, state: "Paused" }, said: "media-rs4-2-1 is paused" }));
    renderPage("/transitions?name=media-rs4-2-1", { ...list(transition), pauseTransition: pause });
    const button = await screen.findByRole("button", { name: "Pause" });
    await waitFor(() => expect(button.getAttribute("aria-disabled")).toBe("false"));
    await userEvent.click(button);
    expect(await screen.findByText("media-rs4-2-1 is paused")).toBeDefined();
    expect(pause).toHaveBeenCalledOnce();
  });

  it("is cancelled only with its name typed", async () => {
    const cancel = vi.fn<(request: { name: string }) => { said: string }>(() => ({ said: "media-rs4-2-1 is being cancelled" }));
    renderPage("/transitions?name=media-rs4-2-1", { ...list(transition), cancelTransition: cancel });
    const button = await screen.findByRole("button", { name: "Cancel…" });
    await waitFor(() => expect(button.getAttribute("aria-disabled")).toBe("false"));
    await userEvent.click(button);
    const dialog = await screen.findByRole("dialog");
    expect(dialog.textContent).toContain("10 groups moved already and stay as rs(4,2)");
    await userEvent.type(within(dialog).getByLabelText("Type media-rs4-2-1 to confirm"), "media{Enter}");
    expect(cancel).not.toHaveBeenCalled();
    await userEvent.type(within(dialog).getByLabelText("Type media-rs4-2-1 to confirm"), "-rs4-2-1{Enter}");
    await waitFor(() => expect(cancel.mock.calls[0]?.[0].name).toBe("media-rs4-2-1"));
  });

  it("names the verb that a button lacks, and does nothing", async () => {
    const pause = vi.fn(() => ({ said: "" }));
    renderPage("/transitions?name=media-rs4-2-1", { ...list(transition), whoAmI: () => ({ ...everyVerb, verbs: ["get"] }), pauseTransition: pause });
    const button = await screen.findByRole("button", { name: "Pause" });
    await waitFor(() => expect(button.title).toBe("You lack the verb pause."));
    await userEvent.click(button);
    expect(pause).not.toHaveBeenCalled();
    await expectAccessible();
  });

  it("explains a refusal", async () => {
    renderPage("/transitions?name=media-rs4-2-1", {
      ...list(transition),
      pauseTransition: () => {
        throw new ConnectError("media-rs4-2-1 has ended (done)", Code.FailedPrecondition);
      },
    });
    const button = await screen.findByRole("button", { name: "Pause" });
    await waitFor(() => expect(button.getAttribute("aria-disabled")).toBe("false"));
    await userEvent.click(button);
    expect((await screen.findByText("media-rs4-2-1 has ended (done)")).closest('[role="alert"]')).not.toBeNull();
  });

  it("is approved with the plan that was looked at", async () => {
    const approve = vi.fn<(request: { planHash: string }) => { said: string }>(() => ({ said: "media-rs4-2-1 is approved" }));
    const waiting = { ...transition, state: "Unapproved", needsApproval: true, approved: false };
    renderPage("/transitions?name=media-rs4-2-1", { ...list(transition), getTransition: () => ({ transition: waiting }), approveTransition: approve });
    const button = await screen.findByRole("button", { name: "Approve" });
    await waitFor(() => expect(button.getAttribute("aria-disabled")).toBe("false"));
    await userEvent.click(button);
    await waitFor(() => expect(approve.mock.calls[0]?.[0].planHash).toBe("abc"));
  });
});

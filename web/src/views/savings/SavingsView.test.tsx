import { Code, ConnectError } from "@connectrpc/connect";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";

import type { PlanPolicyRequest } from "../../gen/console/v1/policies_pb";
import { expectAccessible } from "../../testing/axe";
import { morning, policy } from "../../testing/fixtures";
import { without } from "../../testing/refusals";
import { renderPage, said, type Answers } from "../../testing/render";
import { moment } from "../../words/time";
import { costLine } from "./SavingsView";

const prices = { storageGibMonth: 0.02, networkGib: 0.01, millionOperations: 0.4, paybackMonths: 6 };
const gib = 1n << 30n;
const priced = { ...policy, prices, savedBytes: 50n * gib, rungs: [{ scheme: "rs(4,2)", groups: 1n, bytes: 80n * gib, storedBytes: 100n * gib }] };
const later = timestampFromDate(new Date("2026-01-02T09:00:00Z"));
const newest = [
  { backend: "local", class: "media", policy: "media", hottest: "rep(3)", prices, samples: [{ at: later, cost: 2, hottestCost: 3 }] },
  { backend: "local", class: "logs", hottest: "rep(2)", prices: { ...prices, storageGibMonth: 0.1 }, samples: [{ at: morning, cost: 1, hottestCost: 2 }] },
];
const history: Answers["getHistory"] = ({ total }) =>
  total
    ? {
        classes: [
          {
            samples: [
              { at: morning, cost: 4, hottestCost: 4 },
              { at: later, cost: 3, hottestCost: 5 },
            ],
          },
        ],
      }
    : { classes: newest };
const answers: Answers = {
  getHistory: history,
  watchPolicies: (_, context) => said(context.signal, { whole: true, policies: [priced] }),
  getPolicy: () => ({ policy: priced, yaml: "spec:\n  backendRef: local\n" }),
  lintPolicy: () => ({ findings: [] }),
  diffPolicy: () => ({ differences: [] }),
  planPolicy: () => ({ plans: [{ policy: "media", line: "Nothing would move: it does not pay.", moves: [{ from: "rep(3)", to: "rs(4,2)", heat: "seldom", fate: "refused", why: "pays back in 9 months, limit 6" }] }] }),
};

describe("savings", () => {
  it("are what a month costs against everything on its hottest scheme", async () => {
    renderPage("/savings", answers);
    const sentence = "a month of what is stored costs 3.00, 2.00 less than the 5.00 of keeping everything on its hottest scheme.";
    expect(await screen.findByText(`As of ${moment(later)}: ${sentence}`)).toBeDefined();
    expect(await screen.findByRole("row", { name: `media 2.00 1.00 rep(3): 3.00 0.02 ${moment(later)}` })).toBeDefined();
    expect(screen.getByRole("row", { name: `logs 1.00 1.00 rep(2): 2.00 0.10 ${moment(morning)}` })).toBeDefined();
    expect(await screen.findByText(/Compared with everything on the hottest scheme/)).toBeDefined();
    await expectAccessible();
  });

  it("show what other prices come to before they are saved, and go on in the editor", async () => {
    const planned = vi.fn<(request: PlanPolicyRequest) => void>();
    const page = renderPage("/savings?policy=media", {
      ...answers,
      planPolicy: (request, context) => {
        planned(request);
        return answers.planPolicy?.(request, context) ?? {};
      },
    });
    const user = userEvent.setup();
    const field = await screen.findByLabelText("A GiB stored for a month");
    expect(screen.queryByRole("button", { name: "Review and save…" })).toBeNull();
    await user.clear(field);
    await user.type(field, "0.04");
    expect(await screen.findByText("A month of media would count 4.00 instead of 2.00, and what is saved against all of it on rep(3) 2.00 instead of 1.00.")).toBeDefined();
    expect(await screen.findByText("Not moved from rep(3) to rs(4,2): pays back in 9 months, limit 6.")).toBeDefined();
    await waitFor(() => expect(planned.mock.lastCall?.[0].document?.text).toContain('storageGiBMonth: "0.04"'));
    await expectAccessible();
    await user.click(screen.getByRole("button", { name: "Review and save…" }));
    await waitFor(() => expect(page.location()).toBe("/policies/edit?name=media&prices=storageGiBMonth%3A0.04"));
    await waitFor(() => expect(planned.mock.lastCall?.[0].document?.text).toContain('storageGiBMonth: "0.04"'));
  });

  it("take no prices that make no sense", async () => {
    renderPage("/savings?policy=media", answers);
    const user = userEvent.setup();
    const field = await screen.findByLabelText("Months in which a move must pay");
    await user.clear(field);
    await user.type(field, "0");
    expect(await screen.findByText("Give a number of months above 0.")).toBeDefined();
    expect(screen.queryByRole("button", { name: "Review and save…" })).toBeNull();
  });

  it("say what to do first, which verb is missing, and what is wrong", async () => {
    const empty = renderPage("/savings", { getHistory: () => ({}), watchPolicies: (_, context) => said(context.signal, { whole: true }) });
    expect(await screen.findByText("Nothing is known of this time yet")).toBeDefined();
    expect(await screen.findByText("No policy is declared")).toBeDefined();
    await expectAccessible();
    empty.unmount();
    const refused = renderPage("/savings", {
      ...answers,
      getHistory: () => {
        throw without("get");
      },
    });
    expect((await screen.findAllByText(/You lack the verb get for/)).length).toBeGreaterThan(0);
    refused.unmount();
    renderPage("/savings", {
      ...answers,
      getHistory: () => {
        throw new ConnectError("the disk is full", Code.Internal);
      },
    });
    expect((await screen.findAllByText(/the disk is full/)).length).toBeGreaterThan(0);
  });

  it("are said in a sentence whichever way they go", () => {
    expect(costLine(2, 2)).toBe("a month of what is stored costs 2.00, as it would with everything on its hottest scheme.");
    expect(costLine(3, 2)).toBe("a month of what is stored costs 3.00, 1.00 more than the 2.00 of keeping everything on its hottest scheme.");
  });
});

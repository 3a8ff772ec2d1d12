import { Code, ConnectError } from "@connectrpc/connect";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";

import type { WhatIfRequest } from "../../gen/console/v1/heat_pb";
import type { PinPolicyRequest, UnpinPolicyRequest } from "../../gen/console/v1/policies_pb";
import { expectAccessible } from "../../testing/axe";
import { morning, policy } from "../../testing/fixtures";
import { everyVerb, renderPage, said, type Answers } from "../../testing/render";

const pinned = { ...policy, pin: { scheme: "rs(4,2)", until: morning, by: "ada", reason: "the audit" } };
const line = "10 groups with 20 MiB would move, sending 0 B over the network.";
const whatIf = {
  then: {
    line,
    ending: ["media-rep3-9"],
    moves: [{ from: "rep(3)", to: "rs(4,2)", heat: "however often", fate: "approval", why: "every transition of the policy needs approval", bytes: 20n << 20n }],
    total: { bytesSent: 0n },
  },
  rungs: [
    { scheme: "rep(3)", bytesNow: 20n << 20n, bytesThen: 0n },
    { scheme: "rs(4,2)", bytesNow: 80n << 20n, bytesThen: 100n << 20n },
  ],
};

function page(shown: typeof policy | typeof pinned, more: Answers = {}) {
  return renderPage("/policies?name=media", {
    watchPolicies: (_, context) => said(context.signal, { whole: true, policies: [shown] }),
    getPolicy: () => ({ policy: shown, yaml: "kind: RedundancyPolicy\n" }),
    whatIf: () => whatIf,
    ...more,
  });
}

describe("pinning", () => {
  it("shows what a pin moves before it is set, and sets it", async () => {
    const asked = vi.fn<(request: WhatIfRequest) => void>();
    const pin = vi.fn<(request: PinPolicyRequest) => void>();
    page(policy, {
      whatIf: (request) => {
        asked(request);
        return whatIf;
      },
      pinPolicy: (request) => {
        pin(request);
        return { policy: pinned, said: "media is pinned to rs(4,2)" };
      },
    });
    const user = userEvent.setup();
    const before = Date.now();
    await user.click(await screen.findByRole("button", { name: "Pin…" }));
    const dialog = await screen.findByRole("dialog", { name: "Pin media" });
    await user.selectOptions(within(dialog).getByLabelText("Scheme"), "rs(4,2)");
    await user.click(within(dialog).getByRole("radio", { name: "1 month" }));
    expect(await within(dialog).findByText(line)).toBeDefined();
    expect(within(dialog).getByText(/It ends media-rep3-9/)).toBeDefined();
    expect(within(dialog).getByText("rep 3 to 4+2: 20 MiB, when a person approves: every transition of the policy needs approval")).toBeDefined();
    expect(within(dialog).getByText("then 0 B: 20 MiB less")).toBeDefined();
    await user.type(within(dialog).getByLabelText("Why"), "the audit");
    await expectAccessible();
    expect(pin).not.toHaveBeenCalled();
    await user.click(within(dialog).getByRole("button", { name: "Pin" }));
    expect(await screen.findByText("media is pinned to rs(4,2)")).toBeDefined();
    const request = pin.mock.calls[0]?.[0];
    expect(request).toMatchObject({ name: "media", scheme: "rs(4,2)", reason: "the audit" });
    const days = ((request?.until === undefined ? 0 : timestampDate(request.until).getTime()) - before) / 86_400_000;
    expect(days).toBeGreaterThanOrEqual(30);
    expect(days).toBeLessThan(30.1);
    expect(asked.mock.lastCall?.[0].pin).toMatchObject({ scheme: "rs(4,2)" });
  });

  it("asks nothing and sets nothing before there is a time", async () => {
    const asked = vi.fn<(request: WhatIfRequest) => void>();
    page(policy, {
      whatIf: (request) => {
        asked(request);
        return whatIf;
      },
    });
    const user = userEvent.setup();
    await user.click(await screen.findByRole("button", { name: "Pin…" }));
    const dialog = await screen.findByRole("dialog", { name: "Pin media" });
    await waitFor(() => expect(asked).toHaveBeenCalled());
    await user.click(within(dialog).getByRole("radio", { name: "Other" }));
    expect(within(dialog).getByText("Say until when, to see what would move.")).toBeDefined();
    expect(within(dialog).getByRole<HTMLButtonElement>("button", { name: "Pin" }).disabled).toBe(true);
    asked.mockClear();
    await user.type(within(dialog).getByLabelText("Ends at"), "2026-03-04T05:06");
    await waitFor(() => expect(asked).toHaveBeenCalled());
    const until = asked.mock.lastCall?.[0].pin?.until;
    expect(until === undefined ? undefined : timestampDate(until)).toEqual(new Date(2026, 2, 4, 5, 6));
  });

  it("says why the console would refuse it", async () => {
    page(policy, {
      whatIf: () => {
        throw new ConnectError("pin.until has passed; give a time in the future", Code.InvalidArgument);
      },
    });
    await userEvent.setup().click(await screen.findByRole("button", { name: "Pin…" }));
    expect(await screen.findByText(/What would move is not known: .*give a time in the future/)).toBeDefined();
  });

  it("says what is pinned, and unpins it after showing what moves then", async () => {
    const unpin = vi.fn<(request: UnpinPolicyRequest) => void>();
    page(pinned, {
      unpinPolicy: (request) => {
        unpin(request);
        return { policy, said: "media is not pinned any more" };
      },
    });
    const user = userEvent.setup();
    expect(await screen.findByText(/^Pinned to rs\(4,2\) until .* by ada: the audit$/)).toBeDefined();
    await user.click(screen.getByRole("button", { name: "Unpin…" }));
    const dialog = await screen.findByRole("dialog", { name: "Unpin media" });
    expect(await within(dialog).findByText(line)).toBeDefined();
    await expectAccessible();
    await user.click(within(dialog).getByRole("button", { name: "Unpin" }));
    expect(await screen.findByText("media is not pinned any more")).toBeDefined();
    expect(unpin.mock.calls[0]?.[0].name).toBe("media");
  });

  it("is not for those without the verb, nor for policies without temperature", async () => {
    const first = page(policy, { whoAmI: () => ({ ...everyVerb, verbs: ["get", "plan"] }) });
    const button = await screen.findByRole("button", { name: "Pin…" });
    await waitFor(() => expect(button.getAttribute("title")).toBe("You lack the verb apply."));
    first.unmount();
    page({ ...policy, rules: [] });
    const other = await screen.findByRole("button", { name: "Pin…" });
    await waitFor(() => expect(other.getAttribute("title")).toMatch(/no temperature rules/));
    await userEvent.setup().click(other);
    expect(screen.queryByRole("dialog")).toBeNull();
  });
});

describe("the temperature of what is pinned", () => {
  it("says so at its ladder and has the same buttons", async () => {
    renderPage("/temperature?backend=local&class=media", {
      watchPolicies: (_, context) => said(context.signal, { whole: true, policies: [pinned] }),
      watchHeat: (_, context) =>
        said(context.signal, { classes: [{ backend: "local", class: "media", policy: "media", at: morning, complete: true, halfLife: "24h0m0s", dwell: "6h0m0s", rungs: policy.rungs, rules: policy.rules, pin: pinned.pin }] }),
      getHistory: () => ({ classes: [{ backend: "local", class: "media", samples: [{ at: morning, buckets: [{ atLeast: 4, bytes: 10n }] }] }] }),
    });
    const rung = (await screen.findAllByRole("listitem")).find((item) => item.textContent.startsWith("4+2"));
    expect(rung?.textContent).toMatch(/Pinned to rs\(4,2\) until .* by ada: the audit/);
    expect(screen.getByRole("img", { name: /^Heat map: media .*\(pinned\)/ })).toBeDefined();
    expect(await screen.findByRole("button", { name: "Change the pin…" })).toBeDefined();
    await expectAccessible();
  });
});

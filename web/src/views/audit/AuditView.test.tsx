import { timestampDate } from "@bufbuild/protobuf/wkt";
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";

import type { AuditFilter, ExportAuditRequest } from "../../gen/console/v1/audit_pb";
import { expectAccessible } from "../../testing/axe";
import { morning } from "../../testing/fixtures";
import { renderPage, type Answers } from "../../testing/render";

const action = { sequence: 7n, begun: morning, ended: morning, user: "ada", verb: "pause", action: "PauseTransition", object: "Transition/media-1", result: "done" };
const asked = vi.fn<(filter: AuditFilter | undefined) => void>();
const answers: Answers = {
  listAudit: ({ filter }) => {
    asked(filter);
    return { actions: [action] };
  },
};

beforeEach(() => asked.mockClear());

const dateOf = (stamp: AuditFilter["since"]): Date | undefined => (stamp === undefined ? undefined : timestampDate(stamp));

describe("the audit log of a time", () => {
  it("is asked for by a span that ends now, which the link keeps", async () => {
    const page = renderPage("/audit", answers);
    await screen.findByText("PauseTransition");
    expect(dateOf(asked.mock.lastCall?.[0]?.since)).toBeUndefined();
    const before = Date.now();
    await userEvent.setup().selectOptions(screen.getByLabelText("When"), "Last day");
    await waitFor(() => expect(dateOf(asked.mock.lastCall?.[0]?.since)?.getTime()).toBeGreaterThanOrEqual(before - 86_400_000));
    expect(dateOf(asked.mock.lastCall?.[0]?.since)?.getTime()).toBeLessThan(Date.now() - 86_300_000);
    expect(page.location()).toContain("since=day");
    await expectAccessible();
  });

  it("is asked for from one time to another, as a link says", async () => {
    renderPage("/audit?since=2026-01-02T07:00:00.000Z&until=2026-01-02T09:00:00.000Z", answers);
    await screen.findByText("PauseTransition");
    expect(dateOf(asked.mock.lastCall?.[0]?.since)).toEqual(new Date("2026-01-02T07:00:00Z"));
    expect(dateOf(asked.mock.lastCall?.[0]?.until)).toEqual(new Date("2026-01-02T09:00:00Z"));
    expect(screen.getByLabelText<HTMLSelectElement>("When").value).toBe("between");
    await expectAccessible();
  });

  it("is asked for from a time that is typed, and says what is wrong with it", async () => {
    const page = renderPage("/audit", answers);
    const user = userEvent.setup();
    await user.selectOptions(await screen.findByLabelText("When"), "From … to …");
    await user.type(screen.getByLabelText("From"), "2026-03-04T05:06");
    const from = new Date(2026, 2, 4, 5, 6);
    await waitFor(() => expect(dateOf(asked.mock.lastCall?.[0]?.since)).toEqual(from));
    expect(page.location()).toContain(`since=${encodeURIComponent(from.toISOString())}`);
    await user.type(screen.getByLabelText("To"), "2026-03-04T05:05");
    expect(await screen.findByText("It ends before it begins.")).toBeDefined();
    await expectAccessible();
    await user.selectOptions(screen.getByLabelText("When"), "Any time");
    await waitFor(() => expect(page.location()).toBe("/audit"));
  });

  it("is exported for that time", async () => {
    const exported = vi.fn<(request: ExportAuditRequest) => void>();
    URL.createObjectURL = vi.fn(() => "blob:nothing");
    URL.revokeObjectURL = vi.fn();
    vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(() => undefined);
    renderPage("/audit?since=2026-01-02T07:00:00.000Z&until=2026-01-02T09:00:00.000Z", {
      ...answers,
      exportAudit: async function* (request) {
        exported(request);
        yield await Promise.resolve({ chunk: new TextEncoder().encode("{}") });
      },
    });
    await userEvent.setup().click(await screen.findByRole("button", { name: "Export CSV" }));
    await waitFor(() => expect(exported).toHaveBeenCalled());
    const filter = exported.mock.calls[0]?.[0].filter;
    expect([dateOf(filter?.since), dateOf(filter?.until)]).toEqual([new Date("2026-01-02T07:00:00Z"), new Date("2026-01-02T09:00:00Z")]);
  });
});

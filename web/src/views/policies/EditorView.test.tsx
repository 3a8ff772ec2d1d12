import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";

import type { ApplyPolicyRequest } from "../../gen/console/v1/policies_pb";
import { expectAccessible } from "../../testing/axe";
import { policy } from "../../testing/fixtures";
import { renderPage } from "../../testing/render";

// jsdom lays nothing out, and lacks what CodeMirror asks where things are.
Range.prototype.getClientRects = () => [] as unknown as DOMRectList;

describe("a policy that somebody else applied first", () => {
  it("is applied only when its fields are taken over, which is explained", async () => {
    const applied = vi.fn<(request: ApplyPolicyRequest) => void>();
    const owned = { file: "media", line: 3, column: 1, severity: "error", path: "spec.budget", message: "somebody else has set it", taken: true };
    renderPage("/policies/edit?name=media", {
      getPolicy: () => ({ policy, yaml: "kind: RedundancyPolicy\n" }),
      lintPolicy: () => ({ findings: [] }),
      diffPolicy: ({ force }) => (force ? { differences: [{ object: "RedundancyPolicy/media", change: "change", fields: [{ path: "spec.budget", before: "1Mi", after: "40Mi" }] }] } : { findings: [owned] }),
      planPolicy: () => ({ plans: [] }),
      applyPolicy: (request) => {
        applied(request);
        return { applied: [{ object: "RedundancyPolicy/media", outcome: "configured" }] };
      },
    });
    const user = userEvent.setup();
    const box = await screen.findByRole("checkbox", { name: "Take these fields over" });
    expect(screen.getByText(/belong to whoever applied them first/)).toBeDefined();
    const apply = screen.getByRole("button", { name: "Apply" });
    expect(apply.getAttribute("title")).toMatch(/belong to somebody else/);
    await user.click(apply);
    expect(applied).not.toHaveBeenCalled();
    await user.click(box);
    expect(await screen.findByText("40Mi")).toBeDefined();
    await expectAccessible();
    await waitFor(() => expect(apply.getAttribute("title")).toBe(""));
    await user.click(apply);
    await waitFor(() => expect(applied.mock.calls[0]?.[0].force).toBe(true));
  });
});

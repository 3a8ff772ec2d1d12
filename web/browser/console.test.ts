import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { policy } from "./policy";
import { openStage, type Stage } from "./stage";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Every view by its link, with what shows that the link was followed to the end. */
const links = {
  "/": "All 24 objects can lose 2 nodes.",
  "/transitions?show=all&name=photos-rs4-2-1": "Bytes",
  "/transitions?policy=photos&show=all": "Transitions of photos",
  "/plan?policy=photos": /^One group/,
  "/plan?from=rs(4,2)&to=rep(3)": /^One group/,
  "/nodes?name=local/n3": /^n3$/,
  "/policies?name=photos": "Ladder",
  "/policies/edit?name=photos": "Edit policy photos",
  "/temperature?backend=local&class=photos&hours=6": "Class photos",
  "/objects?prefix=photos/&key=photos/photo-1.jpg": "photos/photo-1.jpg",
  "/audit?verb=apply": "Audit",
  "/settings": "How the console works",
  "/about": "Backends",
} as const;
const views = Object.keys(links);

let stage: Stage;
let page: Page;

beforeAll(async () => {
  stage = await openStage();
  page = await stage.browser.newPage({ viewport: { width: 1280, height: 800 } });
});
afterAll(() => stage.end());

/** seen waits for a text, as whoever looks at the page does. */
const seen = (text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor({ timeout: 60_000 });

/** write replaces what the editor holds. */
async function write(text: string): Promise<void> {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(text);
}

/** Whoever has never seen the project finds out what moves and why, and stops it. The steps build on each other. */
describe("the console in a browser", () => {
  it("says what to do first", async () => {
    await page.goto(stage.url);
    await seen("Nothing is stored yet");
  });

  it("explains a mistake where it is, and applies a policy once it is mended", async () => {
    await page.goto(`${stage.url}/policies/edit`);
    await write(policy.replace("below: 98304", "belo: 98304"));
    await seen(/line 15, column \d+/);
    expect(await page.getByRole("button", { name: "Apply" }).getAttribute("aria-disabled")).toBe("true");
    await write(policy);
    await seen("No mistake was found.");
    await seen("RedundancyPolicy/photos: create");
    await page.locator('button[aria-disabled="false"]', { hasText: "Apply" }).click();
    await seen("RedundancyPolicy/photos created.");
    await page.goto(`${stage.url}/policies`);
    await page.getByRole("grid", { name: "policies" }).getByText("ready", { exact: true }).waitFor({ timeout: 60_000 });
  });

  it("shows at one glance whether data is safe", async () => {
    stage.fill();
    await page.goto(stage.url);
    await page.getByRole("heading", { level: 1, name: "All 24 objects can lose 2 nodes." }).waitFor({ timeout: 60_000 });
  });

  it("shows what a plan costs, and starts it when it is approved", async () => {
    await page.goto(`${stage.url}/plan?policy=photos`);
    await page.getByRole("heading", { name: "Waiting for approval" }).waitFor({ timeout: 60_000 });
    await page.getByRole("heading", { name: /^One group/ }).first().waitFor();
    await page.getByText(/groups?, sends 0 B/).first().waitFor();
    await page.locator('button[aria-disabled="false"]', { hasText: "Approve" }).first().click();
    await seen(/is approved/);
  });

  it("shows bytes moving, pauses, resumes and cancels", async () => {
    await page.goto(`${stage.url}/transitions`);
    await page.getByRole("grid", { name: "transitions" }).getByText("Running").first().waitFor({ timeout: 60_000 });
    await page.getByRole("grid", { name: "transitions" }).locator("tr", { hasText: "Running" }).first().press("Enter");
    const beside = page.getByRole("complementary");
    const progress = beside.getByRole("progressbar").first();
    await progress.waitFor();
    const name = (await beside.getByRole("heading", { level: 2 }).textContent()) ?? "";
    const before = await progress.getAttribute("aria-valuetext");
    await page.waitForFunction((old) => document.querySelector('aside [role="progressbar"]')?.getAttribute("aria-valuetext") !== old, before, { timeout: 60_000 });

    await beside.getByRole("button", { name: "Pause" }).click();
    await beside.getByRole("button", { name: "Resume" }).waitFor({ timeout: 60_000 });
    await beside.getByRole("button", { name: "Resume" }).click();
    await beside.getByRole("button", { name: "Pause" }).waitFor({ timeout: 60_000 });

    await beside.getByRole("button", { name: "Cancel…" }).click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByRole("button", { name: "Cancel transition" }).isDisabled()).toBe(true);
    await dialog.getByLabel(`Type ${name} to confirm`).fill(name);
    await dialog.getByRole("button", { name: "Cancel transition" }).click();
    await beside.getByText("Cancelled").first().waitFor({ timeout: 60_000 });
  });

  it("empties a node once its name is typed, and ends that", async () => {
    await page.goto(`${stage.url}/nodes?name=local/n5`);
    const beside = page.getByRole("complementary");
    await beside.getByRole("button", { name: "Drain…" }).click({ timeout: 60_000 });
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Type n5 to confirm").fill("n4");
    expect(await dialog.getByRole("button", { name: "Drain node" }).isDisabled()).toBe(true);
    await dialog.getByLabel("Type n5 to confirm").fill("n5");
    await dialog.getByRole("button", { name: "Drain node" }).click();
    await beside.getByRole("progressbar", { name: "Emptying of n5" }).waitFor({ timeout: 60_000 });
    await page.getByRole("grid", { name: "nodes" }).locator("tr", { hasText: "n5" }).getByText(/draining/).first().waitFor({ timeout: 60_000 });
    await beside.getByRole("button", { name: "End draining" }).click();
    await beside.getByRole("button", { name: "Drain…" }).waitFor({ timeout: 60_000 });
  });

  it("has another node take the place of one", async () => {
    const address = await stage.startAgent("fresh");
    await page.goto(`${stage.url}/nodes?name=local/n6`);
    await page.getByRole("complementary").getByRole("button", { name: "Replace…" }).click({ timeout: 60_000 });
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("By another node").check();
    await dialog.getByLabel("Type n6 to confirm").fill("n6");
    expect(await dialog.getByRole("button", { name: "Replace node" }).isDisabled()).toBe(true);
    await dialog.getByLabel("Name of the other node").fill("fresh");
    await dialog.getByLabel("Address of its agent, host:port").fill(address);
    await dialog.getByRole("button", { name: "Replace node" }).click();
    const nodes = page.getByRole("grid", { name: "nodes" });
    await nodes.locator("tr", { hasText: "fresh" }).getByText("up", { exact: true }).waitFor({ timeout: 60_000 });
    await page.getByRole("complementary").getByRole("button", { name: "Close Node local/n6" }).click(); // which makes room for the slots
    await nodes.locator("tr", { hasText: /^n6/ }).locator("td", { hasText: /^0$/ }).first().waitFor({ timeout: 120_000 });
    await page.goto(stage.url);
    await page.getByRole("heading", { level: 1, name: "All 24 objects can lose 2 nodes." }).waitFor({ timeout: 120_000 });
  });

  it("has every one of these in the audit log", async () => {
    await page.goto(`${stage.url}/audit`);
    const grid = page.getByRole("grid", { name: "actions" });
    for (const action of ["ApplyPolicy", "ApproveTransition", "PauseTransition", "ResumeTransition", "CancelTransition", "DrainNode", "UndrainNode", "ReplaceNode"]) {
      await grid.getByText(action).first().waitFor();
    }
    await page.getByRole("button", { name: "Verify the log" }).click();
    await seen(/each as it was written/);
  });

  it("says that there is no such transition", async () => {
    await page.goto(`${stage.url}/transitions?name=nothing`);
    await seen("There is no such thing: transition nothing");
  });

  it("follows a link to every view", async () => {
    const followed: string[] = [];
    for (const [path, text] of Object.entries(links)) {
      const fresh = await stage.browser.newPage({ viewport: { width: 1280, height: 800 } });
      await fresh.goto(stage.url + path);
      await fresh.locator("main").getByRole("heading", { name: text }).first().waitFor({ timeout: 60_000 });
      if (new URL(fresh.url()).pathname === path.split("?")[0]) followed.push(path);
      if (path.startsWith("/nodes?name=")) {
        const chosen = fresh.getByRole("row", { selected: true });
        expect(await chosen.evaluate((row) => getComputedStyle(row).backgroundColor)).not.toBe("rgba(0, 0, 0, 0)");
      }
      await fresh.close();
    }
    expect(followed).toEqual(views);
  });

  it("asks for a token, and says which verb is missing", async () => {
    const token = "a token of the suite, which only lets see";
    const hash = createHash("sha256").update(token).digest("hex");
    const url = await stage.consoleWithTokens(`users:\n  - name: grace\n    tokenSHA256: ${hash}\n    verbs: [get]\n`);
    const context = await stage.browser.newContext({ viewport: { width: 1280, height: 800 } });
    const guest = await context.newPage();
    await guest.goto(url);
    await guest.getByText("The console does not know who you are").first().waitFor({ timeout: 60_000 });
    await guest.goto(`${url}/settings`);
    await guest.getByLabel("Token", { exact: true }).fill(token);
    await guest.getByRole("button", { name: "Use it" }).click();
    await guest.getByText("grace", { exact: true }).first().waitFor({ timeout: 60_000 });
    await guest.goto(`${url}/plan?policy=photos`);
    await guest.getByText("You lack the verb plan for the plan of photos").waitFor({ timeout: 60_000 });
    await guest.goto(`${url}/policies?name=photos`);
    const hold = guest.getByRole("complementary").getByRole("button", { name: "Hold", exact: true });
    await hold.and(guest.locator('[title="You lack the verb pause."]')).waitFor({ timeout: 60_000 });
    expect(await hold.getAttribute("aria-disabled")).toBe("true");
    await guest.goto(url);
    await guest.getByRole("heading", { level: 1, name: "All 24 objects can lose 2 nodes." }).waitFor({ timeout: 60_000 });
    await context.close();
  });

  for (const colorScheme of ["light", "dark"] as const) {
    it(`can be read by everybody, ${colorScheme}`, async () => {
      // axe is a script of the test's, which the console's own rules would keep out.
      const context = await stage.browser.newContext({ colorScheme, bypassCSP: true, viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
      const found: string[] = [];
      for (const view of views) {
        const looked = await context.newPage();
        looked.on("pageerror", (error) => found.push(`${view}: ${error.message}`));
        await looked.goto(stage.url + view);
        await looked.locator("main h1").first().waitFor();
        await looked.waitForFunction(() => document.querySelector('[aria-label^="Loading "]') === null, undefined, { timeout: 30_000 });
        await looked.evaluate(axe);
        const { violations } = await looked.evaluate(() => (window as unknown as { axe: { run: () => Promise<AxeResults> } }).axe.run());
        found.push(...violations.flatMap(({ id, nodes }) => nodes.map((node) => `${view}: ${id}: ${node.html.slice(0, 200)} ${node.any[0]?.message ?? ""}`)));
        await looked.close();
      }
      await context.close();
      expect(found).toEqual([]);
    });
  }

  it("fits a phone", async () => {
    const context = await stage.browser.newContext({ viewport: { width: 390, height: 844 } });
    for (const view of views) {
      const looked = await context.newPage();
      await looked.goto(stage.url + view);
      await looked.locator("main h1").first().waitFor();
      expect([view, await looked.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)]).toEqual([view, true]);
      await looked.close();
    }
    await context.close();
  });

  it("keeps the shell when a view cannot be loaded, and tries again", async () => {
    const context = await stage.browser.newContext();
    await context.route(/NodesView-.*\.js/, (route) => route.abort());
    const looked = await context.newPage();
    await looked.goto(stage.url);
    await looked.getByRole("link", { name: "Nodes", exact: true }).click();
    const again = looked.getByRole("button", { name: "Try again" });
    await again.waitFor();
    expect(await looked.getByRole("navigation", { name: "Views" }).isVisible()).toBe(true);
    expect(await looked.getByRole("status", { name: "Is my data safe?" }).isVisible()).toBe(true);
    await context.unroute(/NodesView-.*\.js/);
    await again.click();
    await looked.getByRole("heading", { level: 1, name: "Nodes" }).waitFor();
    await context.close();
  });

  it("keeps the last picture when the console is gone, and says so", async () => {
    await page.goto(stage.url);
    await page.getByRole("heading", { level: 1, name: /24 objects/ }).waitFor();
    await page.waitForFunction(() => performance.getEntriesByType("resource").filter(({ name }) => /View-.*\.js/.test(name)).length >= 12);
    await stage.stop();
    await seen("Disconnected from the console");
    expect(await page.getByRole("heading", { level: 1, name: /24 objects/ }).isVisible()).toBe(true);
    // The code of the other views was loaded while nobody did anything.
    for (const place of ["Transitions", "Nodes", "Savings"]) {
      await page.getByRole("link", { name: place, exact: true }).first().click();
      await page.getByRole("heading", { level: 1, name: place }).waitFor();
      expect(await page.getByRole("navigation", { name: "Views" }).isVisible()).toBe(true);
    }
  });
});

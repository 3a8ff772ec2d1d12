import { spawn, execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

import type { Browser, Page } from "playwright-core";

import { openBrowser, startCluster, type Cluster } from "./cluster";
import { populate } from "./scene";

const patience = 120_000;
const root = resolve(import.meta.dirname, "../..");
const pictures = join(root, "docs/pictures");

/** A job has come so far that something of it is done. */
const underWay = (page: Page): Promise<void> => page.getByRole("progressbar").and(page.locator('[aria-valuetext]:not([aria-valuetext^="0 B of"])')).first().waitFor({ timeout: patience });

/** A Picture is what is looked at, until what it is about is there. */
interface Picture {
  name: string;
  path: string;
  dark?: boolean;
  phone?: boolean;
  /** Of the window; what shows little needs no more. */
  height?: number;
  ready: (page: Page) => Promise<void>;
}

const heading = (page: Page, text: string | RegExp): Promise<void> => page.getByRole("heading", { name: text }).first().waitFor({ timeout: patience });
const row = (page: Page, text: string | RegExp) => page.getByRole("grid").locator("tbody tr", { hasText: text }).first();

/** Steps into the plan of a group until blocks cross the network or are added up. */
async function midStep(page: Page, steps: number): Promise<void> {
  await heading(page, /^One group/);
  const next = page.getByRole("toolbar", { name: "Steps of the plan" }).getByRole("button", { name: "Next" });
  await next.waitFor({ timeout: patience });
  for (let i = 0; i < steps; i++) await next.click();
  await page.getByText(`step ${steps} of`).first().waitFor();
  await page.getByRole("heading", { name: /^One group/ }).first().evaluate((element) => element.scrollIntoView({ block: "start" }));
}

// While everything is well: classes cool, one transition waits for approval, one is paused, two go on.
const calm: Picture[] = [
  { name: "overview", path: "/", ready: underWay },
  { name: "overview-dark", path: "/", dark: true, ready: underWay },
  { name: "temperature", path: "/temperature?backend=local&class=backups&hours=6", ready: (page) => heading(page, "Class backups") },
  { name: "temperature-dark", path: "/temperature?backend=local&class=backups&hours=6", dark: true, ready: (page) => heading(page, "Class backups") },
  { name: "policies", path: "/policies?name=media", ready: (page) => page.getByRole("complementary").getByRole("heading", { name: "Ladder" }).waitFor({ timeout: patience }) },
  {
    name: "editor",
    path: "/policies/edit?name=media",
    ready: async (page) => {
      await page.locator(".cm-line", { hasText: "halfLife" }).click({ timeout: patience });
      await page.keyboard.press("End");
      await page.keyboard.press("Backspace");
      await page.keyboard.type("econds");
      const place = page.getByText(/line \d+, column \d+/).first();
      await place.waitFor({ timeout: patience });
      await place.evaluate((element) => element.scrollIntoView({ block: "center" }));
    },
  },
  { name: "editor-dark", path: "/policies/edit?name=media", dark: true, ready: (page) => page.getByText("No mistake was found.").waitFor({ timeout: patience }) },
  { name: "plan", path: "/plan?policy=media", ready: (page) => heading(page, "Waiting for approval") },
  { name: "plan-step", path: "/plan?from=rs(4,2)&to=rs(12,2)", height: 480, ready: (page) => midStep(page, 1) },
  { name: "plan-step-dark", path: "/plan?from=rs(12,2)&to=rs(4,2)", dark: true, height: 680, ready: (page) => midStep(page, 3) },
  {
    name: "transitions",
    path: "/transitions?show=all",
    ready: async (page) => {
      await row(page, "Running").click({ timeout: patience });
      await page.getByRole("complementary").getByRole("progressbar").first().waitFor({ timeout: patience });
    },
  },
  {
    name: "transition-nodes",
    path: "/transitions",
    ready: async (page) => {
      await row(page, "Running").click({ timeout: patience });
      const nodes = page.getByRole("complementary").getByRole("heading", { name: "The nodes now" });
      await nodes.evaluate((element) => element.scrollIntoView({ block: "start" }), undefined, { timeout: patience });
      await page.getByRole("complementary").getByRole("columnheader", { name: "Reads" }).waitFor({ timeout: patience });
    },
  },
  {
    name: "objects",
    path: "/objects?prefix=backups/",
    ready: async (page) => {
      await row(page, "backups/").click({ timeout: patience });
      await page.getByRole("complementary").getByRole("heading", { level: 2 }).first().waitFor({ timeout: patience });
      await page.getByRole("complementary").getByRole("figure").or(page.getByRole("complementary").locator("svg")).first().waitFor({ timeout: patience });
    },
  },
  { name: "audit", path: "/audit", ready: (page) => row(page, "PauseTransition").waitFor({ timeout: patience }) },
  { name: "settings", path: "/settings", dark: true, ready: (page) => heading(page, "How the console works") },
  { name: "about", path: "/about", ready: (page) => page.locator("main dl").first().waitFor({ timeout: patience }) },
  { name: "phone-overview", path: "/", phone: true, ready: underWay },
];

// While a node has been given up and what it held is rebuilt.
const troubled: Picture[] = [
  { name: "overview-repair", path: "/", ready: (page) => page.getByRole("progressbar", { name: /^Repair of/ }).first().waitFor({ timeout: patience }) },
  {
    name: "nodes",
    path: "/nodes?name=local/n9",
    ready: (page) => page.getByRole("complementary").getByText("out", { exact: true }).waitFor({ timeout: patience }),
  },
  { name: "phone-repair", path: "/", phone: true, ready: (page) => page.getByRole("progressbar", { name: /^Repair of/ }).first().waitFor({ timeout: patience }) },
];

async function take(browser: Browser, cluster: Cluster, { name, path, dark = false, phone = false, height = 800, ready }: Picture): Promise<void> {
  const context = await browser.newContext({
    viewport: phone ? { width: 390, height: 844 } : { width: 1280, height },
    colorScheme: dark ? "dark" : "light",
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  await page.goto(cluster.url + path);
  await ready(page);
  await page.waitForFunction(() => document.querySelector('[aria-label^="Loading "]') === null, undefined, { timeout: patience });
  const file = join(pictures, `${name}.png`);
  await page.screenshot({ path: file });
  await context.close();
  compress(file);
  console.log(`pictures: ${name}.png, ${Math.ceil(statSync(file).size / 1024)} KiB`);
}

const compressor = ["/usr/bin/pngquant", "/usr/local/bin/pngquant"].find((path) => existsSync(path));

/** Pictures of pages have few colours. Without pngquant they stay whole, at three times the size. */
function compress(file: string): void {
  if (compressor !== undefined) execFileSync(compressor, ["--force", "--strip", "--speed", "1", "--output", file, "128", file]);
}

/** Pauses the transitions of a class from its page. */
async function pause(browser: Browser, cluster: Cluster, policy: string): Promise<void> {
  const page = await browser.newPage();
  await page.goto(`${cluster.url}/transitions?policy=${policy}`);
  await row(page, "Running").click({ timeout: patience });
  const beside = page.getByRole("complementary");
  await beside.getByRole("button", { name: "Pause" }).click({ timeout: patience });
  await beside.getByRole("button", { name: "Resume" }).waitFor({ timeout: patience });
  await page.close();
}

/** The terminal's pictures are drawn by a program of its own, from the keys of a script. */
async function recordTerminal(cluster: Cluster): Promise<void> {
  const record = spawn("go", ["run", "./tui/screen/record", "-console", cluster.url, "-script", "tui/screen/record/tour.keys", "-out", pictures], { cwd: root, stdio: "inherit" });
  const [code] = (await once(record, "exit")) as [number | null];
  if (code !== 0) throw new Error("the terminal could not be recorded");
  console.log(`pictures: session.cast, ${Math.ceil(readFileSync(join(pictures, "session.cast")).length / 1024)} KiB`);
}

/** main makes the pictures of the documentation, of which the names can be given. */
export async function main(names: string[]): Promise<void> {
  const wanted = ({ name }: Picture): boolean => names.length === 0 || names.includes(name);
  mkdirSync(pictures, { recursive: true });
  if (compressor === undefined) console.log("pictures: there is no pngquant, so they are not compressed");
  const cluster = await startCluster(16); // two more than the widest scheme lies on, for what is lost
  const browser = await openBrowser();
  try {
    populate(cluster);
    await pause(browser, cluster, "logs");
    for (const picture of calm.filter(wanted)) await take(browser, cluster, picture);
    if (names.length === 0 || names.includes("terminal")) await recordTerminal(cluster);
    cluster.restripe("repair", "limit", "--rate", "256KiB/s");
    cluster.restripe("node", "patience", "--down-after", "5s", "--out-after", "10s");
    cluster.silence("n9");
    for (const picture of troubled.filter(wanted)) await take(browser, cluster, picture);
  } finally {
    await browser.close();
    await cluster.end();
  }
}

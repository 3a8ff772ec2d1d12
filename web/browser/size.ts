import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";

import type { Browser } from "playwright-core";

import { announced, openBrowser, stopped } from "./cluster";

const root = resolve(import.meta.dirname, "../..");
const document_ = join(root, "docs/benchmarks/console.md");

/** How much there is of everything, and how often each view is loaded. */
const policies = 1000;
const transitions = 10_000;
const nodes = 500;
const loads = 5;
const aimMilliseconds = 2000;

/** A view is usable when its first answer can be read and clicked, and whole when nothing more of it is to come. */
interface View {
  name: string;
  path: string;
  usable: string;
  whole?: string;
}

const firstRow = '[role="grid"] tbody tr[data-key]';
const views: View[] = [
  { name: "overview", path: "/", usable: "main h1", whole: '[aria-label^="Table of heat"] tbody tr' },
  { name: "transitions that have not ended", path: "/transitions", usable: firstRow },
  { name: "all transitions", path: "/transitions?show=all", usable: firstRow, whole: `[aria-rowcount="${transitions + 1}"]` },
  { name: "one transition", path: "/transitions?show=all&name=class-0001-rs4-2-1", usable: "aside dl", whole: `[aria-rowcount="${transitions + 1}"]` },
  { name: "policies", path: "/policies", usable: firstRow, whole: `[aria-rowcount="${policies + 1}"]` },
  { name: "policy editor", path: "/policies/edit?name=class-0500", usable: ".cm-content", whole: "section[aria-labelledby=dry-run] .picture-figure" },
  { name: "plan", path: "/plan?policy=class-0500", usable: "main .picture-figure" },
  { name: "nodes", path: "/nodes", usable: firstRow, whole: `[aria-rowcount="${nodes + 1}"]` },
  { name: "temperature", path: "/temperature?backend=large&class=class-0500&hours=24", usable: "section[aria-labelledby=one-class] svg", whole: "section[aria-labelledby=over-time] svg" },
  { name: "objects", path: "/objects", usable: firstRow },
  { name: "audit", path: "/audit", usable: "main h1" },
  { name: "settings", path: "/settings", usable: "main dl" },
  { name: "about", path: "/about", usable: "main dl" },
];

interface Load {
  usable: number;
  whole: number;
  longestTask: number;
  elements: number;
  scriptBytes: number;
  dataBytes: number;
  heapBytes: number;
}

interface Marks {
  usable?: number;
  whole?: number;
  longestTask: number;
}

/** Runs in the page from its beginning: when there is something at a place that a click would hit, and how long it was busy. */
function watchPage({ usable, whole }: { usable: string; whole: string }): void {
  const marks: Marks = { longestTask: 0 };
  (window as unknown as { marks: Marks }).marks = marks;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) marks.longestTask = Math.max(marks.longestTask, duration);
  }).observe({ type: "longtask", buffered: true });
  const canBeClicked = (selector: string): boolean => {
    const element = document.querySelector(selector);
    if (element === null) return false;
    const box = element.getBoundingClientRect();
    if (box.width === 0 || box.height === 0) return false;
    const hit = document.elementFromPoint(box.left + Math.min(box.width / 2, 50), box.top + Math.min(box.height / 2, 10));
    return hit === null ? box.top >= window.innerHeight : element.contains(hit) || hit.contains(element);
  };
  const look = (): void => {
    const now = performance.now();
    if (marks.usable === undefined && canBeClicked(usable)) marks.usable = now;
    if (marks.usable !== undefined && document.querySelector(whole) !== null) marks.whole = now;
    if (marks.whole === undefined) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

async function load(browser: Browser, url: string, view: View): Promise<Load> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Performance.enable");
  let dataBytes = 0;
  const scripts = new Set<string>();
  session.on("Network.responseReceived", ({ requestId, type }) => type === "Script" && scripts.add(requestId));
  session.on("Network.dataReceived", ({ requestId, dataLength }) => (dataBytes += scripts.has(requestId) ? 0 : dataLength));
  await page.addInitScript(watchPage, { usable: view.usable, whole: view.whole ?? view.usable });
  await page.goto(url + view.path);
  await page.waitForFunction(() => (window as unknown as { marks: Marks }).marks.whole !== undefined, undefined, { timeout: 120_000 });
  const { marks, elements, scriptBytes } = await page.evaluate(() => ({
    marks: (window as unknown as { marks: Marks }).marks,
    elements: document.querySelectorAll("*").length,
    scriptBytes: (performance.getEntriesByType("resource") as PerformanceResourceTiming[]).filter(({ name }) => name.endsWith(".js")).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
  }));
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  const heapBytes = metrics.find(({ name }) => name === "JSHeapUsedSize")?.value ?? NaN;
  await context.close();
  return { usable: marks.usable ?? NaN, whole: marks.whole ?? NaN, longestTask: marks.longestTask, elements, scriptBytes, dataBytes, heapBytes };
}

/** What somebody does with ten thousand rows, each from the key to the picture that follows it. */
const doings: { name: string; keys: string[]; done: string }[] = [
  { name: "the filter is typed, the key that leaves one row", keys: ["c", "l", "a", "s", "s", "-", "0", "0", "0", "7", "-", "r", "s", "4", "-", "2", "-", "7"], done: '[role="grid"][aria-rowcount="2"]' },
  { name: "the filter is taken away", keys: ["Escape"], done: `[role="grid"][aria-rowcount="${transitions + 1}"]` },
];

interface Painted {
  painted: Promise<number>;
}

async function act(browser: Browser, url: string): Promise<Map<string, number>> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.goto(`${url}/transitions?show=all`);
  await page.locator(`[aria-rowcount="${transitions + 1}"]`).waitFor({ timeout: 120_000 });
  const took = new Map<string, number>();
  const filter = page.getByRole("textbox", { name: /^Filter/ });
  await filter.focus();
  for (const { name, keys, done } of doings) {
    for (const key of keys.slice(0, -1)) await page.keyboard.press(key);
    took.set(name, await timed(() => page.keyboard.press(keys.at(-1) ?? ""), done));
  }
  await page.locator(firstRow).first().focus();
  took.set("the last row is gone to", await timed(() => page.keyboard.press("End"), `tr[aria-rowindex="${transitions + 1}"]:focus`));
  took.set("rows are sorted by name", await timed(() => page.getByRole("button", { name: "Name" }).click(), 'th[aria-sort="ascending"]'));
  await page.locator(firstRow).first().focus();
  took.set("a row is opened", await timed(() => page.keyboard.press("Enter"), "aside dl"));
  await context.close();
  return took;

  async function timed(does: () => Promise<void>, done: string): Promise<number> {
    // The listener is there before the key is.
    await page.evaluate((selector) => {
      (window as unknown as Painted).painted = new Promise<number>((resolve) => {
        let began = 0;
        const look = (): void => {
          if (document.querySelector(selector) === null) requestAnimationFrame(look);
          else requestAnimationFrame(() => resolve(performance.now() - began));
        };
        const heard = new AbortController();
        const begin = ({ timeStamp }: Event): void => {
          heard.abort();
          began = timeStamp;
          look();
        };
        for (const kind of ["keydown", "pointerdown"]) window.addEventListener(kind, begin, { capture: true, signal: heard.signal });
      });
    }, done);
    await does();
    return page.evaluate(() => (window as unknown as Painted).painted);
  }
}

const median = (values: number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(2)} s`;
const kibibytes = (bytes: number): string => `${Math.round(bytes / 1024).toLocaleString("en")} KiB`;

function report(measured: Map<string, Load[]>, done: Map<string, number[]>, browser: Browser, load: number): string {
  const worst = [...measured.values()].flat().reduce((slowest, { usable }) => Math.max(slowest, usable), 0);
  const commit = execFileSync("git", ["describe", "--always", "--dirty"], { cwd: root, encoding: "utf8" }).trim();
  const lines = [
    "# The page at size",
    "",
    `A console over an API server with ${policies.toLocaleString("en")} policies and ${transitions.toLocaleString("en")} transitions, a backend of ${nodes} nodes with ${policies.toLocaleString("en")} classes, and a history as full as it gets. The gateway is a stand-in that answers the console and stores nothing. Twelve transitions run, and their progress comes while the page loads. Every load is cold: a browser without a cache, on the same machine, over loopback.`,
    "",
    `- date: ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC, commit: ${commit}, Chromium ${browser.version()}`,
    `- machine: ${cpus()[0]?.model ?? "unknown"}, ${cpus().length} cores, which the browser, the console, the API server and the gateway share; load average before the run: ${load.toFixed(2)} (with more than about 0.3 something else was running: times are then preliminary)`,
    `- command: \`make bench-console\`; ${loads} loads of each view in a window of 1280 x 800`,
    "",
    "*Usable*: the first row or the answer is there, and a click would hit it. *Whole*: nothing more of the view is to come. *Data*: what the console sent until then, uncompressed. *Heap*: of the page, after it was cleared of garbage.",
    "",
    "| view | usable, median (slowest) | whole, median (slowest) | longest task, median | elements | JavaScript, compressed | data | heap |",
    "|---|---|---|---|---|---|---|---|",
    ...[...measured].map(([name, all]) => {
      const of = (pick: (one: Load) => number): number[] => all.map(pick);
      const span = (pick: (one: Load) => number): string => `${seconds(median(of(pick)))} (${seconds(Math.max(...of(pick)))})`;
      return `| ${name} | ${span((one) => one.usable)} | ${span((one) => one.whole)} | ${Math.round(median(of((one) => one.longestTask)))} ms | ${median(of((one) => one.elements)).toLocaleString("en")} | ${kibibytes(median(of((one) => one.scriptBytes)))} | ${kibibytes(median(of((one) => one.dataBytes)))} | ${(median(of((one) => one.heapBytes)) / 2 ** 20).toFixed(0)} MiB |`;
    }),
    "",
    `The aim, every view usable within ${seconds(aimMilliseconds)}, is ${worst <= aimMilliseconds ? "held" : "missed"}: the slowest load took ${seconds(worst)}.`,
    "",
    `## With ${transitions.toLocaleString("en")} rows`,
    "",
    "From the key or click to the picture that follows it.",
    "",
    "| what | median (slowest) |",
    "|---|---|",
    ...[...done].map(([name, took]) => `| ${name} | ${Math.round(median(took))} ms (${Math.round(Math.max(...took))} ms) |`),
    "",
  ];
  return lines.join("\n");
}

/** main measures the page at size and writes what it found. With an argument only the views of that name are loaded, and nothing is written. */
export async function main([only]: string[]): Promise<void> {
  const program = process.env.RESTRIPE;
  if (program === undefined) throw new Error("RESTRIPE must be the path of a restripe built with the pages: go build -tags pages");
  const before = loadavg()[0] ?? NaN;
  const cache = mkdtempSync(join(tmpdir(), "restripe-size-"));
  const state = join(cache, "restripe", "console");
  mkdirSync(state, { recursive: true });
  const world = spawn(process.env.RESTRIPE_WORLD ?? join(root, "bin/bench-console"), ["-policies", String(policies), "-transitions", String(transitions), "-nodes", String(nodes), "-dir", state], { stdio: ["pipe", "pipe", "pipe"] });
  const children: ChildProcess[] = [world];
  let browser: Browser | undefined;
  try {
    console.log("bench-console: declaring everything, which takes about two minutes");
    const { kubeconfig } = await announced(world, { kubeconfig: /^kubeconfig (\S+)/ });
    const served = spawn(program, ["console", "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0"], { env: { ...process.env, XDG_CACHE_HOME: cache }, stdio: ["ignore", "pipe", "pipe"] });
    children.unshift(served);
    const { address } = await announced(served, { address: /listening on (\S+)/ });
    const url = `http://${address}`;
    browser = await openBrowser();
    await load(browser, url, { name: "", path: "/nodes", usable: `[aria-rowcount="${nodes + 1}"]` }); // the console has looked at everything once
    const measured = new Map<string, Load[]>();
    for (const view of views.filter(({ name }) => only === undefined || name.includes(only))) {
      const all: Load[] = [];
      for (let i = 0; i < loads; i++) all.push(await load(browser, url, view));
      measured.set(view.name, all);
      console.log(`${view.name}: usable ${all.map(({ usable }) => seconds(usable)).join(", ")}; whole ${seconds(median(all.map(({ whole }) => whole)))}`);
    }
    const done = new Map<string, number[]>();
    for (let i = 0; i < loads; i++) {
      for (const [name, took] of await act(browser, url)) done.set(name, [...(done.get(name) ?? []), took]);
    }
    const text = report(measured, done, browser, before);
    console.log(text);
    if (only === undefined) writeFileSync(document_, text);
    console.log(`the console's memory: ${/VmHWM:\s+(\d+ kB)/.exec(readFileSync(`/proc/${served.pid ?? ""}/status`, "utf8"))?.[1] ?? "unknown"} at most`);
  } finally {
    await browser?.close();
    for (const child of children) await stopped(child);
    rmSync(cache, { recursive: true, force: true });
  }
}

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { chromium, type Browser } from "playwright-core";

/** Stage is a whole cluster of this machine with its console, and a browser. */
export interface Stage {
  url: string;
  browser: Browser;
  /** Stores objects of the class that the suite moves. */
  fill: () => void;
  /** Stops the cluster and its console, while the browser stays. */
  stopCluster: () => Promise<void>;
  end: () => Promise<void>;
}

const objects = 24;
const objectBytes = 1_500_000;

/** openStage starts `restripe up` with the program that RESTRIPE names, which must have the pages in it. */
export async function openStage(): Promise<Stage> {
  const program = process.env.RESTRIPE;
  if (program === undefined) throw new Error("RESTRIPE must be the path of a restripe built with the pages: go build -tags pages");
  const executablePath = execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim();
  const directory = mkdtempSync(join(tmpdir(), "restripe-browser-"));
  const cluster = spawn(program, ["up", "--dir", join(directory, "state"), "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "pipe"] });
  const stopCluster = async (): Promise<void> => {
    if (cluster.exitCode !== null) return;
    const ended = once(cluster, "exit");
    cluster.kill("SIGINT");
    await ended;
  };
  const { url, gateway } = await announced(cluster);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  return {
    url,
    browser,
    fill: () => fill(program, gateway, join(directory, "files")),
    stopCluster,
    end: async () => {
      await browser.close();
      await stopCluster();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** announced reads the addresses that `restripe up` prints once all of it answers. */
async function announced(cluster: ChildProcess): Promise<{ url: string; gateway: string }> {
  if (cluster.stdout === null || cluster.stderr === null) throw new Error("the output of restripe up cannot be read");
  const said: string[] = [];
  createInterface(cluster.stderr).on("line", (line) => said.push(line));
  let url: string | undefined;
  for await (const line of createInterface(cluster.stdout)) {
    said.push(line);
    url ??= /^console\s+(http:\S+)/.exec(line)?.[1];
    const gateway = /RESTRIPE_GATEWAY=(\S+)/.exec(line)?.[1];
    if (url !== undefined && gateway !== undefined) {
      cluster.stdout.resume();
      return { url, gateway };
    }
  }
  throw new Error(`restripe up ended without saying where its console is:\n${said.join("\n")}`);
}

function fill(program: string, gateway: string, directory: string): void {
  mkdirSync(directory);
  for (let i = 0; i < objects; i++) writeFileSync(join(directory, `photo-${i}.jpg`), Buffer.alloc(objectBytes, i + 1));
  execFileSync(program, ["--gateway", gateway, "put", directory, "photos/"], { stdio: "ignore" });
}

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

import { chromium, type Browser } from "playwright-core";

/** Cluster is a whole cluster of this machine with its console. */
export interface Cluster {
  /** Of the console. */
  url: string;
  /** Runs the program against the cluster and gives back what it printed. */
  restripe: (...args: string[]) => string;
  /** Writes a file into the directory of the cluster, which goes with it, and gives back its path. */
  write: (name: string, content: string | Uint8Array) => string;
  /** Stores files as objects of a prefix. */
  put: (prefix: string, files: { name: string; bytes: number }[]) => void;
  /** Starts another console of the cluster, which asks for tokens, and gives back its address. */
  consoleWithTokens: (tokens: string) => Promise<string>;
  /** Starts an agent that is no member yet, with an empty store, and gives back its address. */
  startAgent: (node: string) => Promise<string>;
  /** Stops the agent of a node from answering; its process stays, so that nothing starts it again. */
  silence: (node: string) => void;
  stop: () => Promise<void>;
  /** Stops everything and removes the directory. */
  end: () => Promise<void>;
}

/** startCluster starts `restripe up` with the program that RESTRIPE names, which must have the pages in it. */
export async function startCluster(agents = 14): Promise<Cluster> {
  const program = process.env.RESTRIPE;
  if (program === undefined) throw new Error("RESTRIPE must be the path of a restripe built with the pages: go build -tags pages");
  const directory = mkdtempSync(join(tmpdir(), "restripe-browser-"));
  const state = join(directory, "state");
  const kubeconfig = join(state, "control", "kubeconfig");
  const silent: number[] = [];
  const up = spawn(program, ["up", "--agents", String(agents), "--dir", state, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "pipe"] });
  const started = [up];
  const { console: url, gateway } = await announced(up, { console: /^console\s+(http:\S+)/, gateway: /RESTRIPE_GATEWAY=(\S+)/ });
  const stop = async (): Promise<void> => {
    for (const pid of silent.splice(0)) process.kill(pid, "SIGCONT");
    await Promise.all(started.splice(0).map(stopped));
  };
  const restripe = (...args: string[]): string =>
    execFileSync(program, args, { encoding: "utf8", env: { ...process.env, KUBECONFIG: kubeconfig, RESTRIPE_GATEWAY: gateway }, stdio: ["ignore", "pipe", "inherit"] });
  const write = (name: string, content: string | Uint8Array): string => {
    const path = join(directory, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  };
  return {
    url,
    restripe,
    write,
    put: (prefix, files) => {
      for (const { name, bytes } of files) write(join("files", prefix, name), bytesOf(prefix + name, bytes));
      restripe("put", join(directory, "files", prefix), prefix);
    },
    consoleWithTokens: async (tokens) => {
      const path = write("tokens.yaml", tokens);
      const second = spawn(program, ["console", "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0", "--users", path], {
        env: { ...process.env, XDG_CACHE_HOME: directory }, // where it keeps its audit log and history
        stdio: ["ignore", "pipe", "pipe"],
      });
      started.unshift(second);
      const { address } = await announced(second, { address: /listening on (\S+)/ });
      return `http://${address}`;
    },
    startAgent: async (node) => {
      const certificate = join(directory, `${node}-tls`);
      restripe("pki", "issue", "agent", node, "--ca", join(state, "pki", "ca"), "--out", certificate);
      const flags = ["--id", node, "--store", `file:${join(directory, node)}`, "--listen", "127.0.0.1:0", "--tls", certificate];
      const agent = spawn(program, ["agent", ...flags], { stdio: ["ignore", "pipe", "pipe"] });
      started.unshift(agent);
      return (await announced(agent, { address: /listening on (\S+)/ })).address;
    },
    silence: (node) => {
      const pid = Number(execFileSync("pgrep", ["-P", String(up.pid), "-f", "--", `agent --id ${node} `], { encoding: "utf8" }));
      silent.push(pid);
      process.kill(pid, "SIGSTOP");
    },
    stop,
    end: async () => {
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** openBrowser starts Debian's chromium. */
export function openBrowser(): Promise<Browser> {
  const executablePath = execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim();
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/** stopped interrupts a process and waits for its end. */
export async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGINT");
  await ended;
}

/** announced reads what a program prints once all of it answers. */
export function announced<Name extends string>(child: ChildProcess, patterns: Record<Name, RegExp>): Promise<Record<Name, string>> {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("the output of the program cannot be read");
  const said: string[] = [];
  const found: Partial<Record<Name, string>> = {};
  const names = Object.keys(patterns) as Name[];
  return new Promise((resolve, reject) => {
    const hear = (line: string): void => {
      said.push(line);
      for (const name of names) found[name] ??= patterns[name].exec(line)?.[1];
      if (names.every((name) => found[name] !== undefined)) resolve(found as Record<Name, string>);
    };
    createInterface(stdout).on("line", hear);
    createInterface(stderr).on("line", hear);
    child.once("error", reject);
    child.once("close", () => reject(new Error(`the program ended without saying ${names.join(", ")}:\n${said.join("\n")}`)));
  });
}

/** bytesOf is content that differs from file to file. */
function bytesOf(name: string, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let x = Buffer.from(name).reduce((sum, byte) => (Math.imul(sum, 31) + byte) | 0, 7) || 1;
  for (let i = 0; i < length; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    bytes[i] = x;
  }
  return bytes;
}

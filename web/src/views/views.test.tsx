import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { expectAccessible } from "../testing/axe";
import { morning, node, overview, policy, transition } from "../testing/fixtures";
import { without } from "../testing/refusals";
import { renderPage, said, type Answers } from "../testing/render";

const traffic = { bytesRead: 120n << 20n, bytesSent: 0n, bytesWritten: 30n << 20n };
const plan = {
  policy: "media",
  backend: "local",
  class: "media",
  ladder: ["rep(3)", "rs(4,2)"],
  feasible: true,
  feasibility: [{ severity: "warning", reason: "NoSpare", message: "a lost node has no spare" }],
  heatAt: morning,
  line: "1 transition would move 40 groups and send nothing.",
  moves: [
    {
      from: "rep(3)",
      to: "rs(4,2)",
      heat: "less than 100 times a day",
      fate: "approval",
      why: "the policy wants it",
      groups: 40n,
      bytes: 40n << 20n,
      traffic,
      storedBefore: 120n << 20n,
      storedAfter: 60n << 20n,
      price: 0.01,
      savingPerMonth: 0.2,
      budgetSeconds: 840,
      comparisons: [
        { way: "lower-bound", applies: true },
        { way: "reencode", applies: true, bytesSent: 80n << 20n, bytesRead: 40n << 20n },
        { way: "ers2-proxy", applies: false },
      ],
      explanation: "Each parity node adds the copies it holds.",
    },
  ],
};
const action = { sequence: 7n, begun: morning, ended: morning, user: "ada", from: "127.0.0.1", verb: "pause", action: "PauseTransition", object: "Transition/media-1", before: '{"a":1}', after: "null", result: "refused", error: "it has ended" };
const stored = { backend: "local", key: "media/a.jpg", keyBytes: new TextEncoder().encode("media/a.jpg"), class: "media", scheme: "rep(3)", size: 1_500_000n, modified: morning };

const answers: Answers = {
  watchOverview: (_, context) => said(context.signal, overview),
  watchNodes: (_, context) => said(context.signal, { whole: true, nodes: [{ ...node, volume: "disk", rates: { read: 2n << 20n, written: 1n << 20n } }, { ...node, name: "n2", state: "down", volume: "disk" }] }),
  watchPolicies: (_, context) => said(context.signal, { whole: true, policies: [policy] }),
  watchTransitions: (_, context) => said(context.signal, { whole: true, transitions: [{ ...transition, needsApproval: true, state: "Unapproved" }] }),
  watchHeat: (_, context) => said(context.signal, { classes: [{ backend: "local", class: "media", policy: "media", at: morning, complete: true, halfLife: "24h0m0s", dwell: "6h0m0s", rungs: policy.rungs, rules: policy.rules }] }),
  getScrubs: () => ({ scrubs: [{ backend: "local", state: "done", groupsTotal: 10n, groupsDone: 10n, findings: 1n, repaired: 1n, finished: morning }], findings: [{ backend: "local", found: morning, kind: "corrupt", group: "g1", node: "n2", text: "a block differs", repaired: true, outcome: "rebuilt" }] }),
  getBalances: () => ({ balances: [{ backend: "local", state: "done", number: 2n, bytesPerSecond: 32n << 20n, bytesTotal: 3n << 20n, bytesMoved: 3n << 20n, slotsMoved: 5n, planned: true, note: "node n2 holds less than its share", finished: morning }] }),
  getCompactions: () => ({
    compactions: [
      { backend: "local", state: "idle", pass: 7n, groupsTotal: 3n, groupsDone: 3n, objectsMoved: 48n, bytesTotal: 10n, bytesDone: 10n, bytesFreed: 2n << 20n, failed: 1n, error: "too few nodes answer", finished: morning, looked: morning, classes: [{ class: "media", groups: 12n, bytes: 115n << 20n, deadBytes: 15n << 20n, deadAtMostPercent: 15 }] },
    ],
  }),
  getPolicy: () => ({ policy, yaml: "kind: RedundancyPolicy\n" }),
  planPolicy: () => ({ plans: [plan] }),
  lintPolicy: () => ({ findings: [] }),
  diffPolicy: () => ({ differences: [{ object: "RedundancyPolicy/media", change: "change", fields: [{ path: "spec.budget", before: "", after: "40Mi" }] }] }),
  getPicture: () => ({ from: "rep(3)", to: "rs(4,2)", rows: 1, columns: 4, cells: [0, 1, 2, 3].map((column) => ({ column, oldStripe: column })), proved: true }),
  getHistory: () => ({ classes: [] }),
  getAbout: () => ({ version: "v1.2.3", started: morning, apiServer: "https://127.0.0.1:6443", authentication: "local", backends: [{ name: "local", type: "file", gateways: ["http://127.0.0.1:7480"], usedBytes: 1n << 30n }], prices: { storageGibMonth: 0.02 } }),
  searchObjects: () => ({ objects: [stored] }),
  getObjectLayout: () => ({ object: stored, groups: [{ id: "g1", scheme: "rep(3)", ladder: "rep(3),rs(4,2)", rows: 1, columns: 4, cellBytes: 1n << 18n, bytes: 1n << 20n, slots: [{ slot: 0, role: "data", node: "n1", state: "ok" }, { slot: 4, role: "parity", node: "n2", state: "missing" }] }] }),
  listAudit: () => ({ actions: [action] }),
};

describe.each([
  ["/plan?policy=media", [/1 transition would move 40 groups/, "re-encoding every group", "cannot make this move", "about 14 min", "Approve"]],
  ["/nodes?name=local/n1", ["every node of rack-a", /20 GiB of 100 GiB, in 56 slots/, "20 GiB of 100 GiB used on 2 nodes, with whatever else is on the 1 disk that they share.", "reads 2.0 MiB/s, sends 0 B/s to other nodes, writes 1.0 MiB/s", "2.0 MiB/s, 0 B/s, 1.0 MiB/s", "a block differs", "Drain…", /48 objects moved out of 3 of 3 groups, 2.0 MiB freed; 1 group could not be compacted/, "too few nodes answer", /15 MiB of 115 MiB dead \(15 % of what lives\) in 12 groups; at most 15 % may be/, "Compact now"]],
  ["/policies?name=media", ["a person approves every transition", /for at least 100 accesses a day/, "Hold"]],
  ["/temperature?backend=local&class=media", [/an access counts half after 24h, and a group stays under a scheme for 6h at least/]],
  ["/objects?prefix=media/&key=media/a.jpg", ["Where it lies", "missing"]],
  ["/audit?action=7", ["it has ended", "Before"]],
  ["/settings", ["everybody who reaches this address is the user of that machine", "0.02"]],
  ["/about", ["v1.2.3", /1.0 GiB of a capacity that is not known/]],
] as [string, (string | RegExp)[]][])("the view %s", (path, texts) => {
  it("shows what is known, to everybody", async () => {
    renderPage(path, answers);
    for (const text of texts) expect((await screen.findAllByText(text)).length).toBeGreaterThan(0);
    await expectAccessible();
  });
});

const refusing = (error: ConnectError): Answers =>
  Object.fromEntries(
    Object.keys(answers).map((name) => [
      name,
      () => {
        throw error;
      },
    ]),
  );

describe.each(["/", "/transitions", "/plan", "/nodes", "/policies", "/policies/edit?name=media", "/temperature", "/audit", "/settings", "/about"])("the view %s", (path) => {
  it("names the verb that is missing", async () => {
    renderPage(path, { ...answers, ...refusing(without("get")) });
    expect((await screen.findAllByText(/You lack the verb get for/)).length).toBeGreaterThan(0);
    await expectAccessible();
  });

  it("says what is wrong when a call fails", async () => {
    renderPage(path, { ...answers, ...refusing(new ConnectError("the disk is full", Code.Internal)) });
    expect((await screen.findAllByText(/the disk is full/)).length).toBeGreaterThan(0);
    await expectAccessible();
  });
});

const ways = [
  { text: "by use (half-life 3 d)", paid: 12.5, leads: true },
  { text: "everything on rep(3)", paid: 30, fixed: true },
];
const choice = { leader: "by use (half-life 3 d)", reason: "it would have cost 3.00", since: morning, countedSince: morning, lookedAt: morning, days: 10, paid: 10, ways, bestFixed: "everything on rep(3)", savedPerMonth: 60.9 };

it.each([
  ["what others would have cost", choice, [/60.90 a month less than everything on rep\(3\)/, "3.00×", "1.25×", /leads/]],
  ["that it costs more", { ...choice, savedPerMonth: -1.5 }, [/1.50 a month more than everything/]],
  ["that rules choose", { ...choice, byRules: true }, [/The rules of the policy place groups/, "3.00×"]],
  ["that nothing is known yet", { ...choice, days: 0 }, [/compared once a day/]],
] as [string, typeof choice, (string | RegExp)[]][])("says of a class under mode auto %s", async (_, known, texts) => {
  renderPage("/temperature?backend=local&class=media", {
    ...answers,
    watchHeat: (_, context) => said(context.signal, { classes: [{ backend: "local", class: "media", policy: "media", at: morning, complete: true, halfLife: "72h0m0s", dwell: "3h0m0s", rungs: policy.rungs, choice: known }] }),
  });
  for (const text of texts) expect((await screen.findAllByText(text)).length).toBeGreaterThan(0);
  await expectAccessible();
});

it("says that there is no such page", async () => {
  renderPage("/nowhere", answers);
  expect(await screen.findByText("There is no such page")).toBeDefined();
});

it("maps the class that was chosen where others have more bytes", async () => {
  const history = (name: string) => ({ classes: [{ backend: "local", class: name, samples: [{ at: timestampFromDate(new Date()), bytes: 1n, buckets: [{ atLeast: 1, bytes: 1n }] }] }] });
  renderPage("/temperature?backend=local&class=media", { ...answers, getHistory: (request) => history(request.class === "" ? "bulk" : request.class) });
  await screen.findByRole("img", { name: /bulk/ });
  await screen.findByRole("img", { name: /media/ });
  await expectAccessible();
});

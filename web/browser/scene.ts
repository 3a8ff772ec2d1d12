import type { Cluster } from "./cluster";

interface Declared {
  name: string;
  ladder: string[];
  /** Accesses a day of a group, from which on each step but the last is right. */
  thresholds: number[];
  halfLife: string;
  budget?: string;
  approval?: "Manual";
}

const declared: Declared[] = [
  { name: "photos", ladder: ["rep(3)", "rs(4,2)"], thresholds: [98304], halfLife: "2s", budget: "640Ki" },
  { name: "logs", ladder: ["rep(3)", "rs(4,2)"], thresholds: [98304], halfLife: "2s", budget: "640Ki" },
  { name: "media", ladder: ["rep(3)", "rs(12,2)"], thresholds: [98304], halfLife: "2s", budget: "1Mi", approval: "Manual" },
  { name: "backups", ladder: ["rep(3)", "rs(4,2)", "rs(12,2)"], thresholds: [98304, 512], halfLife: "30s" },
  { name: "documents", ladder: ["rep(3)", "rs(4,2)"], thresholds: [0.5], halfLife: "24h" },
];

const objects = { photos: 40, logs: 40, media: 24, backups: 48, documents: 16 } as Record<string, number>;

/** populate declares policies and stores objects, so that classes cool within seconds and move slowly enough to be looked at. */
export function populate(cluster: Cluster): void {
  const path = cluster.write("policies.yaml", declared.map(policyText).join("---\n"));
  cluster.restripe("apply", "-f", path);
  for (const { name } of declared) {
    const files = Array.from({ length: objects[name] ?? 0 }, (_, i) => ({ name: fileName(name, i), bytes: 400_000 + ((i * 7919) % 13) * 150_000 }));
    cluster.put(`${name}/`, files);
  }
  for (let i = 0; i < (objects.backups ?? 0); i += 2) {
    for (let reads = 0; reads < 2 ** (i % 5); reads++) cluster.restripe("get", `backups/${fileName("backups", i)}`, cluster.write("read", ""));
  }
}

const endings: Record<string, string> = { photos: "jpg", logs: "log.gz", media: "mp4", backups: "tar", documents: "pdf" };

function fileName(name: string, i: number): string {
  return `2026-${String((i % 12) + 1).padStart(2, "0")}/${name.slice(0, -1)}-${String(i).padStart(3, "0")}.${endings[name] ?? "bin"}`;
}

function policyText({ name, ladder, thresholds, halfLife, budget, approval }: Declared): string {
  const rules = ladder.map((scheme, i) => {
    const atLeast = i < thresholds.length ? `, atLeast: "${thresholds[i]}"` : "";
    const below = i > 0 ? `, below: "${thresholds[i - 1]}"` : "";
    return `    - {scheme: "${scheme}"${atLeast}${below}}\n`;
  });
  return `apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata:
  name: ${name}
spec:
  backendRef: local
  selector:
    prefixes: [${name}/]
  ladder: [${ladder.map((scheme) => `"${scheme}"`).join(", ")}]
  temperature:
    halfLife: ${halfLife}
    dwell: ${halfLife === "24h" ? "6h" : "2s"}
    rules:
${rules.join("")}${approval === undefined ? "" : `  approval:\n    mode: ${approval}\n`}${budget === undefined ? "" : `  budget:\n    bytesPerSecond: ${budget}\n`}  prices:
    millionOperations: "0"
`;
}

// Fails when the JavaScript that the first view loads is larger, compressed, than the limit.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const limitKibibytes = 500;
const dist = new URL("dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", dist), "utf8"));

const entry = Object.keys(manifest).find((name) => manifest[name].isEntry);
if (entry === undefined) {
  throw new Error("dist has no entry: npm run build first");
}

// What the entry imports, and what the first view, which it loads at once, imports.
const files = new Set();
const visit = (name) => {
  const chunk = manifest[name];
  if (files.has(chunk.file)) return;
  files.add(chunk.file);
  for (const imported of chunk.imports ?? []) visit(imported);
};
visit(entry);
const first = Object.keys(manifest).find((name) => name === "src/views/overview/OverviewView.tsx");
if (first === undefined) {
  throw new Error("src/views/overview/OverviewView.tsx, the first view, is no chunk of dist any longer: mend size.js");
}
visit(first);
for (const name of manifest[first].dynamicImports ?? []) visit(name);

let total = 0;
for (const file of files) {
  const size = gzipSync(readFileSync(new URL(file, dist))).length;
  total += size;
  console.log(`${(size / 1024).toFixed(1).padStart(8)} KiB  ${file}`);
}
console.log(`${(total / 1024).toFixed(1).padStart(8)} KiB  in all, compressed, of at most ${limitKibibytes} KiB`);
if (total > limitKibibytes * 1024) {
  console.error("The first view loads too much JavaScript: load what it does not need on demand.");
  process.exitCode = 1;
}

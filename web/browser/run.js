// Runs a program of this folder, which is written in TypeScript: node browser/run.js browser/pictures.ts
import { resolve } from "node:path";
import { argv } from "node:process";

import { runnerImport } from "vite";

const { module } = await runnerImport(resolve(argv[2]));
await module.main(argv.slice(3));

import { defineConfig } from "vitest/config";

// The browser suite: a real browser before a real console.
export default defineConfig({
  test: {
    include: ["browser/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});

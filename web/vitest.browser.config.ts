import { defineConfig } from "vitest/config";

// The browser suite: a real browser before a real console.
export default defineConfig({
  test: {
    include: ["browser/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 180_000,
  },
});

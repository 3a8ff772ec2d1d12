import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  build: {
    target: "es2023",
    manifest: true, // size.js reads from it what the first view loads
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/restripe.console.v1.Console": "http://127.0.0.1:7482" } },
});

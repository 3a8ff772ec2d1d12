import js from "@eslint/js";
import a11y from "eslint-plugin-jsx-a11y";
import hooks from "eslint-plugin-react-hooks";
import globals from "globals";
import typescript from "typescript-eslint";

export default typescript.config(
  { ignores: ["dist", "src/gen", "node_modules"] },
  js.configs.recommended,
  {
    files: ["**/*.{ts,tsx}"],
    extends: [
      ...typescript.configs.strictTypeChecked,
      ...typescript.configs.stylisticTypeChecked,
      hooks.configs.flat["recommended-latest"],
      a11y.flatConfigs.strict,
    ],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // Numbers are written into texts everywhere; what else might be an object is still found.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // No compiler memoises here; tables are read anew whenever they are drawn.
      "react-hooks/incompatible-library": "off",
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
    },
  },
  {
    // Nothing is fetched outside the hooks of src/data.
    files: ["src/**/*.{ts,tsx}"],
    ignores: ["src/data/**", "src/testing/**", "src/**/*.test.{ts,tsx}"],
    rules: {
      "no-restricted-globals": ["error", "fetch", "XMLHttpRequest", "EventSource", "WebSocket"],
      "no-restricted-imports": [
        "error",
        { paths: ["@connectrpc/connect-web", "@tanstack/react-query"].map((name) => ({ name, message: "Use a hook of src/data." })) },
      ],
    },
  },
  { files: ["*.js"], languageOptions: { globals: globals.node } },
);

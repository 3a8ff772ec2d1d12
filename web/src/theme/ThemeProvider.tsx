import "@mantine/core/styles.css";
import "./page.css";

import { MantineProvider } from "@mantine/core";
import type { ReactNode } from "react";

import { contrast, theme } from "./theme";

/** ThemeProvider follows the light or dark of the system until somebody chooses. */
export function ThemeProvider({ children, animated = true }: { children: ReactNode; animated?: boolean }) {
  return (
    <MantineProvider theme={theme} cssVariablesResolver={contrast} defaultColorScheme="auto" env={animated ? "default" : "test"}>
      {children}
    </MantineProvider>
  );
}

import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { ConsoleProvider, consoleTransport } from "./data/ConsoleProvider";
import { loadViews, makeRouter } from "./router";
import { ThemeProvider } from "./theme/ThemeProvider";

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element root");

const router = makeRouter();

createRoot(root).render(
  <StrictMode>
    <ThemeProvider>
      <ConsoleProvider transport={consoleTransport()}>
        <RouterProvider router={router} />
      </ConsoleProvider>
    </ThemeProvider>
  </StrictMode>,
);

// After the first view is there, so that it need not share the line.
window.setTimeout(() => void loadViews(router), 2000);

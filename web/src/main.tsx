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

// After the first view, when there is nothing better to do. Safari has no requestIdleCallback.
const whenIdle = window.requestIdleCallback ?? ((callback: () => void) => window.setTimeout(callback, 2000));
whenIdle(() => void loadViews(router));

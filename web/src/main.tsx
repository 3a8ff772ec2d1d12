import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { ConsoleProvider, consoleTransport } from "./data/ConsoleProvider";
import { makeRouter } from "./router";
import { ThemeProvider } from "./theme/ThemeProvider";

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element root");

createRoot(root).render(
  <StrictMode>
    <ThemeProvider>
      <ConsoleProvider transport={consoleTransport()}>
        <RouterProvider router={makeRouter()} />
      </ConsoleProvider>
    </ThemeProvider>
  </StrictMode>,
);

import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { createRouterTransport } from "@connectrpc/connect";
import { createMemoryHistory, RouterProvider } from "@tanstack/react-router";
import { render, type RenderResult } from "@testing-library/react";
import type { ReactNode } from "react";

import { ConsoleProvider } from "../data/ConsoleProvider";
import { Console } from "../gen/console/v1/console_pb";
import { makeRouter } from "../router";
import { ThemeProvider } from "../theme/ThemeProvider";

/** Answers are what a console of a test says; calls without one are refused as unimplemented. */
export type Answers = Partial<ServiceImpl<typeof Console>>;

/** renderPlain shows a component that asks nobody. */
export function renderPlain(node: ReactNode): RenderResult {
  return render(<ThemeProvider animated={false}>{node}</ThemeProvider>);
}

/** everyVerb is a user of the console who may do everything. */
export const everyVerb = { user: "ada", by: "local", verbs: ["get", "plan", "apply", "approve", "pause", "cancel", "rollback"] };

/** renderPage shows the page of a path before a console that answers as told. */
export function renderPage(path: string, answers: Answers): RenderResult & { location: () => string } {
  const transport = createRouterTransport((router: ConnectRouter) => router.service(Console, { whoAmI: () => everyVerb, ...answers }));
  const history = createMemoryHistory({ initialEntries: [path] });
  const result = render(
    <ThemeProvider animated={false}>
      <ConsoleProvider transport={transport}>
        <RouterProvider router={makeRouter(history)} />
      </ConsoleProvider>
    </ThemeProvider>,
  );
  return { ...result, location: () => history.location.href };
}

/** said sends messages and then stays open without a word, as a watch does while nothing changes. */
export async function* said<Message>(signal: AbortSignal, ...messages: Message[]): AsyncGenerator<Message> {
  for (const message of messages) yield message;
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

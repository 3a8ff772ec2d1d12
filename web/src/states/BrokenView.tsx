import type { ErrorComponentProps } from "@tanstack/react-router";

import { useOverview } from "../data/overview";
import { ProblemNote } from "./States";

/**
 * BrokenView stands within the shell in the place of a view that could not be shown, as when its code could not be loaded.
 * Trying again loads the page anew, whose code may have other names by now, but not before the console answers: a browser
 * would show a page of its own.
 */
export function BrokenView({ error }: ErrorComponentProps) {
  const { phase, again } = useOverview();
  const text = error instanceof Error ? error.message : String(error);
  if (phase === "broken") return <ProblemNote what="this view" problem={{ kind: "disconnected", text }} again={again} />;
  return <ProblemNote what="this view" problem={{ kind: "failed", text }} again={() => window.location.reload()} />;
}

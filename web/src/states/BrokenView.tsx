import type { ErrorComponentProps } from "@tanstack/react-router";
import { useState } from "react";

import { ProblemNote } from "./States";

/**
 * BrokenView stands within the shell in the place of a view that could not be shown, as when its code could not be loaded.
 * Trying again loads the page anew, whose code may have other names by now, but not before the console answers: a browser
 * would show a page of its own.
 */
export function BrokenView({ error }: ErrorComponentProps) {
  const [silent, setSilent] = useState(false);
  const text = error instanceof Error ? error.message : String(error);
  const again = (): void => {
    fetch("/", { cache: "no-store" }).then(
      () => window.location.reload(),
      () => setSilent(true),
    );
  };
  return <ProblemNote what="this view" problem={silent ? { kind: "disconnected", text } : { kind: "failed", text }} again={again} />;
}

import { Button, Code, Group, Skeleton, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

import type { Following } from "../data/console";
import type { Problem } from "../data/problem";
import styles from "./States.module.css";
import { RouteLink } from "../links/RouteLink";

/** Empty says what to do first, with the command that does it. */
export function Empty({ title, children, command }: { title: string; children?: ReactNode; command?: string }) {
  return (
    <Stack className={styles.state} gap="xs">
      <Text fw={600}>{title}</Text>
      {children !== undefined && <Text size="sm">{children}</Text>}
      {command !== undefined && <Code block>{command}</Code>}
    </Stack>
  );
}

/** Loading keeps the place of what is to come. */
export function Loading({ label, height = 180 }: { label: string; height?: number }) {
  return (
    <div role="status" aria-label={`Loading ${label}`}>
      <Skeleton height={height} />
    </div>
  );
}

/** ProblemNote says what is wrong and what to do about it. */
export function ProblemNote({ what, problem, again }: { what: string; problem: Problem; again?: () => void }) {
  const { title, advice } = wordsOf(what, problem);
  return (
    <Stack className={styles.problem} gap="xs" role="alert">
      <Text fw={600}>{title}</Text>
      <Text size="sm">{problem.text}</Text>
      {advice !== undefined && <Text size="sm">{advice}</Text>}
      {again !== undefined && (
        <Group>
          <Button size="xs" variant="default" onClick={again}>
            Try again
          </Button>
        </Group>
      )}
    </Stack>
  );
}

function wordsOf(what: string, problem: Problem): { title: string; advice?: ReactNode } {
  switch (problem.kind) {
    case "denied":
      return {
        title: problem.verb === "" ? `You may not see ${what}` : `You lack the verb ${problem.verb} for ${what}`,
        advice: `Ask whoever runs this console to give ${problem.user === "" ? "you" : problem.user} that verb.`,
      };
    case "unknown-user":
      return {
        title: "The console does not know who you are",
        advice: (
          <>
            Enter a token under{" "}
            <RouteLink to="/settings">
              Settings
            </RouteLink>
            .
          </>
        ),
      };
    case "disconnected":
      return { title: `The console does not answer, so ${what} cannot be shown`, advice: "Is `restripe console` running? It is asked again by itself." };
    case "missing":
      return { title: `There is no such thing: ${what}` };
    case "refused":
      return { title: `${capital(what)}: refused` };
    case "failed":
      return { title: `${capital(what)}: failed`, advice: "The log of the console has more." };
  }
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** StaleNote says since when a picture is old, while it stays on show. */
export function StaleNote({ following }: { following: Pick<Following<unknown>, "heard" | "problem" | "again"> }) {
  const since = following.heard?.toLocaleTimeString() ?? "";
  return (
    <Group className={styles.stale} role="status" gap="xs">
      <Text size="sm">
        Not up to date: this is what was known at {since}. {following.problem?.text}
      </Text>
      <Button size="compact-xs" variant="default" onClick={following.again}>
        Try again
      </Button>
    </Group>
  );
}

/** Shown shows what is known, or why nothing is, or that it is being asked for. */
export function Shown<State>({
  what,
  following,
  height,
  children,
}: {
  what: string;
  following: Following<State>;
  height?: number;
  children: (state: State) => ReactNode;
}) {
  const { state, problem } = following;
  if (problem?.kind === "denied" || problem?.kind === "unknown-user" || (state === undefined && problem !== undefined)) {
    return <ProblemNote what={what} problem={problem} again={following.again} />;
  }
  if (state === undefined) {
    return height === undefined ? <Loading label={what} /> : <Loading label={what} height={height} />;
  }
  return (
    <>
      {problem !== undefined && <StaleNote following={following} />}
      {children(state)}
    </>
  );
}

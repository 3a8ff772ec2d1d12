import { Stack, Text } from "@mantine/core";

import { useWhatIfPinned } from "../../data/heat";
import { useMay } from "../../data/about";
import type { Policy } from "../../gen/console/v1/policies_pb";
import { sized } from "../../pictures/amount";
import { LadderPicture } from "../../pictures/LadderPicture";
import { shortScheme } from "../../pictures/scheme";

interface PinConsequenceProps {
  policy: Policy;
  /** Empty: what would move without a pin. */
  scheme: string;
  until: Date | undefined;
}

/** PinConsequence is what would move if a policy were pinned so, before anything is saved. */
export function PinConsequence({ policy, scheme, until }: PinConsequenceProps) {
  const mayPlan = useMay("plan");
  const complete = scheme === "" || until !== undefined;
  const what = useWhatIfPinned(policy.name, scheme, until, mayPlan === true && complete);
  return (
    <div aria-live="polite" aria-busy={what.phase === "connecting" || undefined}>
      {mayPlan === false && <Text size="sm">You lack the verb plan, which tells what would move.</Text>}
      {mayPlan === true && !complete && <Text size="sm">Say until when, to see what would move.</Text>}
      {mayPlan === true && complete && what.problem !== undefined && <Text size="sm">What would move is not known: {what.problem.text}</Text>}
      {mayPlan === true && complete && what.problem === undefined && what.state === undefined && <Text size="sm">Asking what would move…</Text>}
      {complete && what.problem === undefined && what.state?.then !== undefined && (
        <Stack gap="xs">
          <Text size="sm" fw={600}>
            {what.state.then.unknown === "" ? what.state.then.line : `Nothing can be said yet: ${what.state.then.unknown}`}
          </Text>
          {what.state.then.ending.length > 0 && <Text size="sm">It ends {what.state.then.ending.join(", ")}, which goes elsewhere. Groups that moved already stay until this moves them on.</Text>}
          {what.state.then.moves.map((move) => (
            <Text size="sm" key={`${move.from} ${move.to} ${move.heat}`}>
              {shortScheme(move.from)} to {shortScheme(move.to)}: {sized(move.bytes)}, {fates[move.fate] ?? move.fate}
              {move.fate === "automatic" ? "" : `: ${move.why}`}
            </Text>
          ))}
          {what.state.then.feasibility.map(({ message }) => (
            <Text size="sm" key={message}>
              {message}
            </Text>
          ))}
          <LadderPicture label={policy.class} rungs={rungsOf(policy)} then={new Map(what.state.rungs.map((rung) => [rung.scheme, Number(rung.bytesThen)]))} />
        </Stack>
      )}
    </div>
  );
}

const fates: Readonly<Record<string, string>> = { automatic: "by itself", approval: "when a person approves", refused: "not moved" };

/** rungsOf is every step of a policy's ladder, also those on which nothing lies. */
function rungsOf(policy: Policy) {
  return policy.ladder.map((scheme) => {
    const rung = policy.rungs.find((one) => one.scheme === scheme);
    return { scheme, groups: Number(rung?.groups ?? 0), bytes: Number(rung?.bytes ?? 0), storedBytes: Number(rung?.storedBytes ?? 0) };
  });
}

import { Button, Group, NumberInput, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { useMay } from "../../data/about";
import { useDraftPlan, usePolicy } from "../../data/policies";
import { Format, type Policy } from "../../gen/console/v1/policies_pb";
import { money } from "../../words/money";
import { changedRates, mistakeInRate, rateNames, ratesOf, storedFor, writeRates, type Rates } from "../../words/prices";
import { withPrices } from "../policies/with-prices";

const pauseMilliseconds = 400;

const labels: Record<keyof Rates, string> = {
  storageGiBMonth: "A GiB stored for a month",
  networkGiB: "A GiB sent",
  millionOperations: "A million operations",
  paybackMonths: "Months in which a move must pay",
};

/** PriceEditor changes the prices of a policy, and shows what that comes to before anything is saved. */
export function PriceEditor({ policy }: { policy: Policy }) {
  const navigate = useNavigate();
  const [typed, setTyped] = useState<Partial<Record<keyof Rates, number | string>>>({});
  const [asked] = useDebouncedValue(typed, pauseMilliseconds);
  if (policy.prices === undefined) return <Text size="sm">The console does not say the prices of this policy.</Text>;
  const before = ratesOf(policy.prices);
  const after = ratesWith(before, typed);
  const mistaken = rateNames.some((name) => mistakeInRate(name, after[name]) !== "");
  const changed = changedRates(before, after);
  const any = Object.keys(changed).length > 0;
  return (
    <Stack gap="sm">
      <Text size="sm">In one currency, whichever it is. A move that stores less is only made where it pays for itself within the months given.</Text>
      <Group gap="sm" align="start">
        {rateNames.map((name) => (
          <NumberInput
            key={name}
            size="xs"
            w={190}
            label={labels[name]}
            min={0}
            decimalScale={9}
            hideControls
            value={typed[name] ?? before[name]}
            error={mistakeInRate(name, after[name])}
            onChange={(value) => setTyped({ ...typed, [name]: value })}
          />
        ))}
      </Group>
      {any && !mistaken && (
        <>
          <div aria-live="polite">
            <Text size="sm" fw={600}>
              {moneyLine(policy, before, after)}
            </Text>
            <Moves policy={policy} changed={changedRates(before, ratesWith(before, asked))} current={asked === typed} />
          </div>
          <Group gap="xs">
            <Button size="xs" onClick={() => void navigate({ to: "/policies/edit", search: { name: policy.name, prices: writeRates(changed) } })}>
              Review and save…
            </Button>
            <Button size="xs" variant="default" onClick={() => setTyped({})}>
              Discard
            </Button>
          </Group>
        </>
      )}
    </Stack>
  );
}

function ratesWith(before: Rates, typed: Partial<Record<keyof Rates, number | string>>): Rates {
  const after = { ...before };
  for (const name of rateNames) {
    const value = typed[name];
    if (value !== undefined) after[name] = value === "" ? Number.NaN : Number(value);
  }
  return after;
}

/** moneyLine is what other prices make of the cost of a month and of what is saved. */
function moneyLine(policy: Policy, before: Rates, after: Rates): string {
  const stored = policy.rungs.reduce((sum, { storedBytes }) => sum + storedBytes, 0n);
  const hottest = policy.ladder[0] ?? "its hottest scheme";
  const pair = (bytes: bigint): string => `${money(storedFor(bytes, after))} instead of ${money(storedFor(bytes, before))}`;
  return `A month of ${policy.class} would count ${pair(stored)}, and what is saved against all of it on ${hottest} ${pair(policy.savedBytes)}.`;
}

/** Moves is what the policy would move at other prices, as some moves pay then that did not, or the other way round. */
function Moves({ policy, changed, current }: { policy: Policy; changed: Partial<Rates>; current: boolean }) {
  const mayPlan = useMay("plan");
  const detail = usePolicy(policy.name);
  const text = detail.state === undefined ? "" : withPrices(detail.state.yaml, changed);
  const plan = useDraftPlan({ name: policy.name, text, format: Format.YAML }, mayPlan === true && text !== "");
  const problem = detail.problem ?? plan.problem;
  const then = plan.state?.plans.find((one) => one.policy === policy.name);
  if (mayPlan === false) return <Text size="sm">You lack the verb plan, which tells what would move.</Text>;
  if (problem !== undefined) return <Text size="sm">What would move is not known: {problem.text}</Text>;
  if (!current || then === undefined) return <Text size="sm">Asking what would move…</Text>;
  return (
    <>
      <Text size="sm">{then.unknown === "" ? then.line : `What would move cannot be said yet: ${then.unknown}`}</Text>
      {then.moves
        .filter(({ fate }) => fate === "refused")
        .map(({ from, to, heat, why }) => (
          <Text size="sm" key={`${from} ${to} ${heat}`}>
            Not moved from {from} to {to}: {why}.
          </Text>
        ))}
    </>
  );
}

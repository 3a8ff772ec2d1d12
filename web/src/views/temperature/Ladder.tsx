import { Button, Group, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { useMay } from "../../data/about";
import { useWhatIf } from "../../data/heat";
import type { ClassHeat } from "../../gen/console/v1/heat_pb";
import type { Policy } from "../../gen/console/v1/policies_pb";
import { consequenceFromApi, rulesFromApi, rungsFromApi } from "../../pictures/ladder-from-api";
import { rulesOf, thresholdsOf, type Thresholds } from "../../pictures/ladder";
import { LadderEditor, type Consequence } from "../../pictures/LadderEditor";
import { LadderPicture } from "../../pictures/LadderPicture";
import { pinWords } from "../../words/pin";
import { writeRules } from "../policies/rules";

const pauseMilliseconds = 250;

/** Ladder is where a class is on its ladder; its thresholds can be dragged, with what would move, before anything is saved. */
export function Ladder({ heat, policy }: { heat: ClassHeat; policy: Policy | undefined }) {
  const navigate = useNavigate();
  const rungs = useMemo(() => rungsFromApi(heat), [heat]);
  const saved = useMemo(() => thresholdsOf(rulesFromApi(heat.rules)), [heat.rules]);
  const [changed, setChanged] = useState<Thresholds>();
  const thresholds = changed ?? saved;
  const [asked] = useDebouncedValue(thresholds, pauseMilliseconds);
  const mayPlan = useMay("plan");
  const rules = useMemo(() => (asked === undefined ? [] : rulesOf(asked).map((rule) => ({ ...rule }))), [asked]);
  const what = useWhatIf(heat.policy, rules, changed !== undefined && heat.policy !== "" && rules.length > 0 && mayPlan === true);
  const consequence = useMemo<Consequence>(() => {
    if (changed === undefined) return { kind: "none" };
    if (what.problem !== undefined) return { kind: "failed", why: what.problem.text };
    return what.state === undefined || asked !== thresholds ? { kind: "asking" } : consequenceFromApi(what.state);
  }, [changed, what.problem, what.state, asked, thresholds]);
  const readOnly = heat.policy === "" ? "No policy is declared for this class." : mayPlan === false ? "You lack the verb plan, which tells what would move." : undefined;
  const pinned = heat.pin === undefined || heat.pin.ended ? {} : { pinned: { scheme: heat.pin.scheme, words: pinWords(heat.pin) } };
  if (heat.rules.length === 0) {
    return (
      <Stack gap="md" mt="sm">
        {(heat.choice === undefined || heat.choice.byRules) && (
          <Text size="sm">{heat.policy === "" ? "No policy is declared for this class, so nothing moves it by itself." : "Its policy has no temperature rules, so use moves nothing."}</Text>
        )}
        <LadderPicture label={heat.class} rungs={rungs} {...pinned} />
      </Stack>
    );
  }
  return (
    <Stack gap="md" mt="sm">
      <LadderEditor label={heat.class} rungs={rungs} thresholds={thresholds} saved={saved} onChange={setChanged} consequence={consequence} {...pinned} {...(readOnly === undefined ? {} : { readOnly })} />
      {changed !== undefined && policy !== undefined && (
        <Group gap="xs">
          <Button size="xs" onClick={() => void navigate({ to: "/policies/edit", search: { name: policy.name, rules: writeRules(rulesOf(changed)) } })}>
            Review and save…
          </Button>
          <Button size="xs" variant="default" onClick={() => setChanged(undefined)}>
            Discard
          </Button>
        </Group>
      )}
    </Stack>
  );
}

import { Alert, Radio, Stack, Text } from "@mantine/core";

import type { PlannedMove, PolicyPlan } from "../../gen/console/v1/plans_pb";
import { counted, sized } from "../../pictures/amount";
import { SchemeStep } from "../transitions/SchemeStep";
import { moment } from "../../words/time";
import { GroupPicture } from "./GroupPicture";
import { MoveCost } from "./MoveCost";
import styles from "./Plan.module.css";

interface PolicyPlannedProps {
  plan: PolicyPlan;
  ladder: string[];
  chosen: { from: string; to: string } | undefined;
  onChoose: (move: PlannedMove) => void;
}

/** PolicyPlanned is what one policy would move now; one of its moves is looked at closely. */
export function PolicyPlanned({ plan, ladder, chosen, onChoose }: PolicyPlannedProps) {
  const move = plan.moves.find(({ from, to }) => from === chosen?.from && to === chosen.to) ?? plan.moves[0];
  const choose = (i: string): void => {
    const next = plan.moves[Number(i)];
    if (next !== undefined) onChoose(next);
  };
  return (
    <Stack gap="md">
      <div>
        <Text fw={600}>{plan.line}</Text>
        {plan.heatAt !== undefined && (
          <Text size="sm" c="dimmed">
            By the use that was known {moment(plan.heatAt)}.
          </Text>
        )}
        {plan.unknown !== "" && <Text size="sm">{plan.unknown}</Text>}
        {plan.moving.length > 0 && <Text size="sm">Under way or waiting already, and not counted again: {plan.moving.join(", ")}.</Text>}
      </div>
      <Feasibilities plan={plan} />
      {plan.moves.length > 0 && (
        <Radio.Group label="Moves, most urgent first" value={move === undefined ? "" : String(plan.moves.indexOf(move))} onChange={choose}>
          <div className={styles.moves}>
            {plan.moves.map((one, i) => (
              <Radio.Card key={`${one.from} ${one.to} ${one.heat}`} value={String(i)} className={styles.move} data-chosen={one === move} aria-label={`${one.from} to ${one.to}`}>
                <SchemeStep from={one.from} to={one.to} />
                <Text size="sm">
                  {counted(one.groups, "group")} of {sized(one.bytes)}, used {one.heat}; sends {sized(one.traffic?.bytesSent ?? 0n)}
                </Text>
                <Text size="sm" c="dimmed">
                  {fateText(one.fate)}: {one.why}
                </Text>
              </Radio.Card>
            ))}
          </div>
        </Radio.Group>
      )}
      {move !== undefined && (
        <>
          <MoveCost move={move} />
          <GroupPicture ladder={ladder.join(",")} from={move.from} to={move.to} />
        </>
      )}
      {move === undefined && ladder.length > 1 && <GroupPicture ladder={ladder.join(",")} from={chosen?.from ?? ladder[0] ?? ""} to={chosen?.to ?? ladder[1] ?? ""} />}
    </Stack>
  );
}

function fateText(fate: string): string {
  return { automatic: "Starts by itself", approval: "Waits for approval", refused: "Not made" }[fate] ?? fate;
}

/** Feasibilities is what stands in the way of a plan, or should be known. */
export function Feasibilities({ plan }: { plan: PolicyPlan }) {
  if (plan.feasibility.length === 0) return null;
  return (
    <Alert color={plan.feasible ? "yellow" : "red"} title={plan.feasible ? "What should be known" : "The backend cannot do this"}>
      {plan.feasibility.map((one) => (
        <Text key={`${one.reason} ${one.message}`} size="sm">
          {one.severity === "error" ? "Stands in the way: " : ""}
          {one.message}
        </Text>
      ))}
    </Alert>
  );
}

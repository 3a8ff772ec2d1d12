import { Button, Group, Modal, NumberInput, Stack, Text } from "@mantine/core";
import { useState } from "react";

import { useMay } from "../../data/about";
import { useBalancePlan, type BalanceSteering } from "../../data/balances";
import type { Balance } from "../../gen/console/v1/balance_pb";
import { PlanShown } from "./PlanShown";

const mebibyte = 1 << 20;
const usualRate = 32;

interface BalanceDialogProps {
  balance: Balance;
  start: BalanceSteering["start"];
  onClose: () => void;
}

/** BalanceDialog begins a balance, or gives the one under way another rate, and shows before what that moves. */
export function BalanceDialog({ balance, start, onClose }: BalanceDialogProps) {
  const underWay = balance.state === "running" || balance.state === "paused";
  const [rate, setRate] = useState<number | string>(underWay ? Number(balance.bytesPerSecond) / mebibyte : usualRate);
  const bytesPerSecond = BigInt(Math.round(Number(rate) * mebibyte));
  const mayPlan = useMay("plan");
  const plan = useBalancePlan(balance.backend, bytesPerSecond, mayPlan === true);
  return (
    <Modal opened onClose={onClose} title={underWay ? `Rate of the balance of ${balance.backend}` : `Balance ${balance.backend}`} size="lg" centered closeButtonProps={{ "aria-label": "Close" }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          start.run({ backend: balance.backend, bytesPerSecond });
          onClose();
        }}
      >
        <Stack gap="sm">
          <Text size="sm">Blocks are copied to other nodes as they are until every node holds about its share, by what its store can hold. Blocks that are used least go first, and everything stays readable.</Text>
          <NumberInput label="At most, in MiB/s" description="Read, sent and written together; 0: no limit" min={0} decimalScale={2} value={rate} onChange={setRate} hideControls data-autofocus />
          <div aria-live="polite" aria-busy={plan.phase === "connecting" || undefined}>
            {mayPlan === false && <Text size="sm">You lack the verb plan, which tells what would be moved.</Text>}
            {mayPlan === true && plan.problem !== undefined && <Text size="sm">What would be moved is not known: {plan.problem.text}</Text>}
            {mayPlan === true && plan.problem === undefined && plan.state === undefined && <Text size="sm">Asking what would be moved…</Text>}
            {plan.problem === undefined && plan.state !== undefined && <PlanShown plan={plan.state} />}
          </div>
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Leave it
            </Button>
            <Button type="submit">{underWay ? "Set rate" : "Start balance"}</Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

import { Group, NumberInput } from "@mantine/core";
import { useState } from "react";

import { ActionButton } from "../../actions/ActionButton";
import type { Steering } from "../../data/transitions";
import type { Transition } from "../../gen/console/v1/transitions_pb";

const mebibyte = 1 << 20;

/** Throttle changes how fast a transition may move, while it does. */
export function Throttle({ transition, throttle }: { transition: Transition; throttle: Steering["throttle"] }) {
  const limit = Number(transition.bytesPerSecondLimit) / mebibyte;
  const [wanted, setWanted] = useState<number | string>(limit === 0 ? "" : limit);
  const bytes = BigInt(Math.round(Number(wanted) * mebibyte));
  return (
    <Group gap="xs" align="end">
      <NumberInput
        size="xs"
        label="Limit in MiB/s"
        description="0 or empty: none of its own; the budget of its policy holds"
        min={0}
        decimalScale={2}
        value={wanted}
        onChange={setWanted}
        hideControls
      />
      <ActionButton verb="pause" loading={throttle.running} onClick={() => throttle.run({ name: transition.name, bytesPerSecond: bytes })}>
        Set limit
      </ActionButton>
    </Group>
  );
}

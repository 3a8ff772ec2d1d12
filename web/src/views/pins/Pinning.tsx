import { Group, Stack, Text } from "@mantine/core";
import { useState } from "react";

import { ActionButton } from "../../actions/ActionButton";
import { Outcome } from "../../actions/Outcome";
import { usePinPolicy, useUnpinPolicy } from "../../data/policies";
import type { Policy } from "../../gen/console/v1/policies_pb";
import { pinWords } from "../../words/pin";
import { PinDialog } from "./PinDialog";
import { UnpinDialog } from "./UnpinDialog";

/** Pinning says what a policy is pinned to, and pins and unpins it. */
export function Pinning({ policy }: { policy: Policy }) {
  const pin = usePinPolicy();
  const unpin = useUnpinPolicy();
  const [asking, setAsking] = useState<{ kind: "pin"; opened: Date } | { kind: "unpin" }>();
  const close = (): void => setAsking(undefined);
  return (
    <Stack gap="xs">
      {policy.pin !== undefined && <Text size="sm">{pinWords(policy.pin)}</Text>}
      <Group gap="xs">
        <ActionButton
          verb="apply"
          loading={pin.running}
          unless={policy.rules.length === 0 ? "The policy has no temperature rules that a pin could hold against; change its default instead." : ""}
          onClick={() => setAsking({ kind: "pin", opened: new Date() })}
        >
          {policy.pin === undefined ? "Pin…" : "Change the pin…"}
        </ActionButton>
        {policy.pin !== undefined && (
          <ActionButton verb="apply" loading={unpin.running} onClick={() => setAsking({ kind: "unpin" })}>
            Unpin…
          </ActionButton>
        )}
      </Group>
      <Outcome actions={[pin, unpin]} />
      {asking?.kind === "pin" && <PinDialog policy={policy} pin={pin} opened={asking.opened} onClose={close} />}
      {asking?.kind === "unpin" && <UnpinDialog policy={policy} unpin={unpin} onClose={close} />}
    </Stack>
  );
}

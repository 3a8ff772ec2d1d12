import { Group, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { ActionButton } from "../../actions/ActionButton";
import { ConfirmByName } from "../../actions/ConfirmByName";
import { useRollbackCost, type Steering } from "../../data/transitions";
import type { Transition } from "../../gen/console/v1/transitions_pb";
import { counted } from "../../pictures/amount";
import { Shown } from "../../states/States";
import styles from "./Transitions.module.css";

/** Steer is what can be done to a transition now. */
export function Steer({ transition, steering }: { transition: Transition; steering: Steering }) {
  const [asking, setAsking] = useState<"cancel" | "rollback">();
  const [reason, setReason] = useState("");
  const { name, state, planHash } = transition;
  const ended = transition.ended !== undefined;
  const cost = useRollbackCost(name, asking === "rollback");
  const done = transition.progress?.groupsDone ?? 0n;
  return (
    <Group gap="xs">
      {transition.needsApproval && !transition.approved && !ended && (
        <ActionButton verb="approve" variant="filled" loading={steering.approve.running} onClick={() => steering.approve.run({ name, planHash })}>
          Approve
        </ActionButton>
      )}
      {!ended && state !== "Paused" && (
        <ActionButton verb="pause" loading={steering.pause.running} onClick={() => steering.pause.run({ name })}>
          Pause
        </ActionButton>
      )}
      {state === "Paused" && (
        <ActionButton verb="pause" variant="filled" loading={steering.resume.running} onClick={() => steering.resume.run({ name })}>
          Resume
        </ActionButton>
      )}
      {!ended && (
        <ActionButton verb="cancel" color="red" variant="outline" loading={steering.cancel.running} onClick={() => setAsking("cancel")}>
          Cancel…
        </ActionButton>
      )}
      {ended && !transition.byHand && (
        <ActionButton
          verb="rollback"
          color="red"
          variant="outline"
          unless={done === 0n ? "No group was moved, so there is nothing to take back." : ""}
          loading={steering.rollback.running}
          onClick={() => setAsking("rollback")}
        >
          Roll back…
        </ActionButton>
      )}
      <ConfirmByName
        opened={asking === "cancel"}
        onClose={() => setAsking(undefined)}
        action="Cancel transition"
        name={name}
        consequence={`It ends after the groups under way. ${counted(done, "group")} moved already and stay as ${transition.to}; the others stay as ${transition.from}. Nothing is lost.`}
        onConfirm={() => steering.cancel.run({ name })}
      />
      <ConfirmByName
        opened={asking === "rollback"}
        onClose={() => setAsking(undefined)}
        action="Roll back transition"
        name={name}
        ready={reason.trim() !== ""}
        consequence={`Another transition takes the groups from ${transition.to} back to ${transition.from}, and the policy ${transition.policy} is held until somebody lets it go on.`}
        onConfirm={() => steering.rollback.run({ name, reason })}
      >
        <Shown what="the cost of taking it back" following={cost} height={80}>
          {({ lines }) => (
            <Text size="sm" className={styles.lines}>
              {lines.join("\n")}
            </Text>
          )}
        </Shown>
        <TextInput label="Why it is taken back" description="It is kept in the audit log" value={reason} onChange={(event) => setReason(event.currentTarget.value)} />
      </ConfirmByName>
    </Group>
  );
}

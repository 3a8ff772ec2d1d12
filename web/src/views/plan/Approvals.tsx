import { Group, Text } from "@mantine/core";

import { ActionButton } from "../../actions/ActionButton";
import { Outcome } from "../../actions/Outcome";
import { useSteering, useTransitions } from "../../data/transitions";
import { counted, sized } from "../../pictures/amount";
import { SchemeStep } from "../transitions/SchemeStep";
import styles from "./Plan.module.css";
import { RouteLink } from "../../links/RouteLink";

/** Approvals is what of a policy waits for a person, with the plan that is approved. */
export function Approvals({ policy }: { policy: string }) {
  const transitions = useTransitions(true).state;
  const { approve } = useSteering();
  const waiting = [...(transitions?.items.values() ?? [])].filter((one) => one.policy === policy && one.needsApproval && !one.approved);
  return (
    <>
      {waiting.length > 0 && (
        <section aria-labelledby="approvals">
          <h2 id="approvals">Waiting for approval</h2>
          <div className={styles.moves}>
            {waiting.map((one) => (
              <Group key={one.name} className={styles.move} gap="sm">
                <RouteLink to="/transitions" search={{ name: one.name }}>
                  {one.name}
                </RouteLink>
                <SchemeStep from={one.from} to={one.to} />
                <Text size="sm">
                  {one.cost === undefined ? "not planned yet" : `${counted(one.cost.groups, "group")}, sends ${sized(one.cost.traffic?.bytesSent ?? 0n)}`}
                </Text>
                <RouteLink to="/plan" search={{ policy, from: one.from, to: one.to }}>
                  Step by step
                </RouteLink>
                <ActionButton
                  verb="approve"
                  variant="filled"
                  unless={one.planHash === "" ? "It is not planned yet, so nobody knows what would be approved." : ""}
                  loading={approve.running}
                  onClick={() => approve.run({ name: one.name, planHash: one.planHash })}
                >
                  Approve
                </ActionButton>
              </Group>
            ))}
          </div>
        </section>
      )}
      <Outcome actions={[approve]} />
    </>
  );
}

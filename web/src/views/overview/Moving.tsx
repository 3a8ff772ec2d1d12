import { Group, Stack, Text } from "@mantine/core";

import type { Overview } from "../../gen/console/v1/overview_pb";
import { counted } from "../../pictures/amount";
import { StateMark } from "../../pictures/StateMark";
import { SchemeStep } from "../transitions/SchemeStep";
import { TransitionProgress } from "../transitions/TransitionProgress";
import styles from "./Overview.module.css";
import { RouteLink } from "../../links/RouteLink";

const shownMost = 5;

/** Moving is what moves, and why. */
export function Moving({ overview }: { overview: Overview }) {
  const moving = overview.moving.slice(0, shownMost);
  const more = overview.movingTotal - BigInt(moving.length);
  return (
    <section aria-labelledby="moving">
      <h2 id="moving">What is moving</h2>
      <Text size="sm">{overview.movingLine}</Text>
      {overview.waitingForApproval > 0n && (
        <Text size="sm" fw={600}>
          <RouteLink to="/transitions">
            {counted(overview.waitingForApproval, "transition")} waiting for approval
          </RouteLink>
        </Text>
      )}
      <Stack gap="xs" mt="xs">
        {moving.map((transition) => (
          <div key={transition.name} className={styles.moving}>
            <Group gap="xs">
              <StateMark state={transition.state} />
              <RouteLink to="/transitions" search={{ name: transition.name }}>
                {transition.name}
              </RouteLink>
              <SchemeStep from={transition.from} to={transition.to} />
            </Group>
            <TransitionProgress transition={transition} />
            <Text size="xs" c="dimmed">
              {transition.reason}
            </Text>
          </div>
        ))}
        {more > 0n && (
          <RouteLink to="/transitions" size="sm">
            {counted(more, "more transition")}
          </RouteLink>
        )}
      </Stack>
    </section>
  );
}

import { Code, Group, Stack, Text } from "@mantine/core";

import { Outcome } from "../../actions/Outcome";
import { useSteering, useTransition } from "../../data/transitions";
import type { Transition, TransitionDetail as Detail } from "../../gen/console/v1/transitions_pb";
import { rated } from "../../pictures/amount";
import { StateMark } from "../../pictures/StateMark";
import { Shown } from "../../states/States";
import { sentence } from "../../words/sentence";
import { moment } from "../../words/time";
import { Comparisons } from "../plan/Comparisons";
import { Conditions } from "./Conditions";
import { NodesNow } from "./NodesNow";
import { SchemeStep } from "./SchemeStep";
import { Steer } from "./Steer";
import { Throttle } from "./Throttle";
import { TrafficTable } from "./TrafficTable";
import { TransitionProgress } from "./TransitionProgress";
import styles from "./Transitions.module.css";
import { RouteLink } from "../../links/RouteLink";

/** TransitionDetail is everything about one transition, and what can be done to it. */
export function TransitionDetail({ name }: { name: string }) {
  const detail = useTransition(name);
  return (
    <Shown what={`transition ${name}`} following={detail} height={360}>
      {(state) => (state.transition === undefined ? null : <Known detail={state} transition={state.transition} />)}
    </Shown>
  );
}

function Known({ detail, transition }: { detail: Detail; transition: Transition }) {
  const steering = useSteering();
  // While it moves, the operator's words for that are what the bar says, only older.
  const progressing = detail.conditions.find(({ type }) => type === "Progressing")?.message;
  // Before there is progress, what stands in its place says why.
  const barSays = transition.progress === undefined || transition.stateWhy === progressing;
  return (
    <Stack gap="md">
      <div>
        <h2 className={styles.name}>{transition.name}</h2>
        <Group gap="sm">
          <StateMark state={transition.state} />
          <SchemeStep from={transition.from} to={transition.to} />
        </Group>
        {!barSays && (
          <Text size="sm" mt={4}>
            {sentence(transition.stateWhy)}
          </Text>
        )}
      </div>
      <TransitionProgress transition={transition} />
      <Steer transition={transition} steering={steering} />
      <Outcome actions={Object.values(steering)} />
      {transition.ended === undefined && <Throttle transition={transition} throttle={steering.throttle} />}
      <Facts transition={transition} />
      <TrafficTable transition={transition} />
      {transition.state === "Running" && <NodesNow backend={transition.backend} />}
      {detail.comparisons.length > 0 && <Comparisons comparisons={detail.comparisons} />}
      {detail.explanation !== "" && (
        <section>
          <h3>What the plan does to one group</h3>
          <Text size="sm">{detail.explanation}</Text>
          <RouteLink to="/plan" search={planOf(transition)} size="sm">
            See it step by step
          </RouteLink>
        </section>
      )}
      <Conditions conditions={detail.conditions} />
      {detail.yaml !== "" && (
        <details>
          <summary>As declared (YAML)</summary>
          <Code block tabIndex={0}>
            {detail.yaml}
          </Code>
        </details>
      )}
    </Stack>
  );
}

function planOf({ policy, from, to }: Transition) {
  return policy === "" ? { from, to } : { policy, from, to };
}

function Facts({ transition }: { transition: Transition }) {
  const { policy, cost } = transition;
  return (
    <dl className={styles.facts}>
      <dt>Why</dt>
      <dd>{transition.reason}</dd>
      <dt>Groups</dt>
      <dd>used {transition.heat}</dd>
      <dt>Class</dt>
      <dd>
        {transition.class} at {transition.backend}
      </dd>
      {policy !== "" && (
        <>
          <dt>Policy</dt>
          <dd>
            <RouteLink to="/policies" search={{ name: policy }}>
              {policy}
            </RouteLink>
          </dd>
        </>
      )}
      {cost !== undefined && (
        <>
          <dt>Price</dt>
          <dd>
            {cost.price === "" ? "not known" : cost.price}
            {cost.savingPerMonth !== "" && `; saves ${cost.savingPerMonth} a month, by the price table`}
          </dd>
        </>
      )}
      <dt>Limit</dt>
      <dd>{transition.bytesPerSecondLimit === 0n ? "none of its own" : rated(transition.bytesPerSecondLimit)}</dd>
      <dt>Made</dt>
      <dd>{moment(transition.created)}</dd>
      {transition.started !== undefined && (
        <>
          <dt>Started</dt>
          <dd>{moment(transition.started)}</dd>
        </>
      )}
      {transition.ended !== undefined && (
        <>
          <dt>Ended</dt>
          <dd>{moment(transition.ended)}</dd>
        </>
      )}
      {transition.rollbackOf !== "" && (
        <>
          <dt>Takes back</dt>
          <dd>
            <RouteLink to="/transitions" search={{ name: transition.rollbackOf }}>
              {transition.rollbackOf}
            </RouteLink>
          </dd>
        </>
      )}
    </dl>
  );
}

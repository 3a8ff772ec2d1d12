import { Code, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";

import { ActionButton } from "../../actions/ActionButton";
import { ConfirmByName } from "../../actions/ConfirmByName";
import { Outcome } from "../../actions/Outcome";
import { useDeletePolicy, useHoldPolicy, usePolicy } from "../../data/policies";
import { Hold, type Policy } from "../../gen/console/v1/policies_pb";
import { RouteLink } from "../../links/RouteLink";
import { counted, heated, rated, sizedOf } from "../../pictures/amount";
import { SchemeShape } from "../../pictures/SchemeShape";
import { Shown } from "../../states/States";
import { moment } from "../../words/time";
import { Pinning } from "../pins/Pinning";
import { Conditions } from "../transitions/Conditions";
import facts from "../transitions/Transitions.module.css";
import { PolicyState } from "./PolicyState";

/** PolicyDetail is one policy: what is where, whether it is well, and what can be done to it. */
export function PolicyDetail({ name, live }: { name: string; live: Policy | undefined }) {
  const detail = usePolicy(name);
  return (
    <Shown what={`policy ${name}`} following={detail} height={360}>
      {(state) => {
        const policy = live ?? state.policy;
        return policy === undefined ? null : <Known policy={policy} yaml={state.yaml} />;
      }}
    </Shown>
  );
}

function Known({ policy, yaml }: { policy: Policy; yaml: string }) {
  const { name } = policy;
  const hold = useHoldPolicy();
  const remove = useDeletePolicy();
  const [asking, setAsking] = useState<"delete" | "drain">();
  const held = policy.stopPolicy !== "None";
  const whole = policy.rungs.reduce((sum, { bytes }) => sum + bytes, 0n);
  return (
    <Stack gap="md">
      <div>
        <h2 className={facts.name}>{name}</h2>
        <PolicyState policy={policy} />
        <Text size="sm" mt={4}>
          {policy.stored}
        </Text>
      </div>
      <Group gap="xs">
        <RouteLink to="/policies/edit" search={{ name }}>
          Edit
        </RouteLink>
        <RouteLink to="/plan" search={{ policy: name }}>
          Plan
        </RouteLink>
        <RouteLink to="/temperature" search={{ backend: policy.backend, class: policy.class }}>
          Temperature
        </RouteLink>
        <RouteLink to="/transitions" search={{ policy: name, show: "all" }}>
          Transitions
        </RouteLink>
      </Group>
      <Group gap="xs">
        {held ? (
          <ActionButton verb="pause" variant="filled" loading={hold.running} onClick={() => hold.run({ name, hold: Hold.NONE })}>
            Let it go on
          </ActionButton>
        ) : (
          <ActionButton verb="pause" loading={hold.running} onClick={() => hold.run({ name, hold: Hold.HOLD })}>
            Hold
          </ActionButton>
        )}
        {policy.stopPolicy !== "HoldAndDrain" && (
          <ActionButton verb="pause" color="red" variant="outline" loading={hold.running} onClick={() => setAsking("drain")}>
            Hold and cancel…
          </ActionButton>
        )}
        <ActionButton verb="apply" color="red" variant="outline" loading={remove.running} onClick={() => setAsking("delete")}>
          Delete…
        </ActionButton>
      </Group>
      <Outcome actions={[hold, remove]} />
      <Pinning policy={policy} />
      <dl className={facts.facts}>
        <dt>Class</dt>
        <dd>
          {policy.class} at {policy.backend}
        </dd>
        <dt>Selects</dt>
        <dd>{policy.prefixes.map((prefix) => (prefix === "" ? "everything" : prefix)).join(", ")}</dd>
        <dt>Approval</dt>
        <dd>{approvalText(policy.approval)}</dd>
        <dt>Budget</dt>
        <dd>{policy.bytesPerSecond === 0n ? "none" : rated(policy.bytesPerSecond)}</dd>
        {policy.nextWindow !== undefined && (
          <>
            <dt>Next window</dt>
            <dd>{moment(policy.nextWindow)}</dd>
          </>
        )}
        <dt>Not ended</dt>
        <dd>{policy.activeTransitions === 0 ? "nothing" : counted(policy.activeTransitions, "transition")}</dd>
      </dl>
      <section>
        <h3>Ladder</h3>
        <Stack gap="sm">
          {policy.rungs.map((rung) => (
            <Stack key={rung.scheme} gap={2}>
              <SchemeShape scheme={rung.scheme} />
              <Text size="sm">
                {sizedOf(rung.bytes, whole)} in {counted(rung.groups, "group")}
                {ruleText(policy, rung.scheme)}
              </Text>
            </Stack>
          ))}
        </Stack>
      </section>
      <Conditions conditions={policy.conditions} />
      <details>
        <summary>As declared (YAML)</summary>
        <Code block tabIndex={0}>
          {yaml}
        </Code>
      </details>
      <ConfirmByName
        opened={asking === "delete"}
        onClose={() => setAsking(undefined)}
        action="Delete policy"
        name={name}
        consequence="What moves under it is cancelled, and its objects stay as they are now; nothing moves them by itself any more."
        onConfirm={() => remove.run({ name, confirm: name })}
      />
      <ConfirmByName
        opened={asking === "drain"}
        onClose={() => setAsking(undefined)}
        action="Hold and cancel"
        name={name}
        consequence={`${counted(policy.activeTransitions, "transition")} of it end after the groups under way, and nothing new starts until it is let go on.`}
        onConfirm={() => hold.run({ name, hold: Hold.DRAIN })}
      />
    </Stack>
  );
}

function approvalText(approval: string): string {
  return { Auto: "starts by itself", Manual: "a person approves every transition", ManualAbove: "a person approves the large ones" }[approval] ?? approval;
}

function ruleText({ rules }: Policy, scheme: string): string {
  const rule = rules.find((one) => one.scheme === scheme);
  if (rule === undefined) return "";
  const { atLeast, below } = rule;
  if (atLeast !== undefined && below !== undefined) return `, for ${heated(atLeast)} up to ${heated(below)}`;
  if (atLeast !== undefined) return `, for at least ${heated(atLeast)}`;
  return below === undefined ? "" : `, for less than ${heated(below)}`;
}

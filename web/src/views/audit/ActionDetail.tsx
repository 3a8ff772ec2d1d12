import { Code, Stack, Text } from "@mantine/core";

import type { AuditAction } from "../../gen/console/v1/audit_pb";
import { StateMark } from "../../pictures/StateMark";
import { moment } from "../../words/time";
import facts from "../transitions/Transitions.module.css";
import { resultMark } from "./result";

/** ActionDetail is one action with what was there before and after. */
export function ActionDetail({ action }: { action: AuditAction }) {
  return (
    <Stack gap="md">
      <div>
        <h2 className={facts.name}>
          {action.action} {action.object}
        </h2>
        <StateMark state={resultMark(action.result)} word={action.result} />
        {action.error !== "" && <Text size="sm">{action.error}</Text>}
        {action.result === "unknown" && <Text size="sm">Its end was never recorded: the console stopped in between.</Text>}
      </div>
      <dl className={facts.facts}>
        <dt>Who</dt>
        <dd>
          {action.user} from {action.from}
        </dd>
        {action.method !== "" && (
          <>
            <dt>Known by</dt>
            <dd>{action.method}</dd>
          </>
        )}
        <dt>Verb</dt>
        <dd>{action.verb}</dd>
        <dt>Begun</dt>
        <dd>{moment(action.begun)}</dd>
        <dt>Ended</dt>
        <dd>{action.ended === undefined ? "not recorded" : moment(action.ended)}</dd>
        {action.planHash !== "" && (
          <>
            <dt>Plan hash</dt>
            <dd>{action.planHash}</dd>
          </>
        )}
      </dl>
      <Json title="Before" text={action.before} />
      <Json title="After" text={action.after} />
    </Stack>
  );
}

function Json({ title, text }: { title: string; text: string }) {
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      {text === "" || text === "null" ? (
        <Text size="sm">nothing</Text>
      ) : (
        <Code block tabIndex={0}>
          {indented(text)}
        </Code>
      )}
    </section>
  );
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

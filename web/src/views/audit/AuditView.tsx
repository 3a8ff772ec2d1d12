import { Alert, Button, Group, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";

import { useAudit, useAuditExport, useAuditVerification, type AuditQuestion } from "../../data/audit";
import type { AuditAction } from "../../gen/console/v1/audit_pb";
import { counted } from "../../pictures/amount";
import { StateMark } from "../../pictures/StateMark";
import { Empty, ProblemNote, Shown } from "../../states/States";
import { Beside } from "../../table/Beside";
import { DataTable, type Column } from "../../table/DataTable";
import { moment, order } from "../../words/time";
import { ActionDetail } from "./ActionDetail";
import { Period } from "./Period";
import { resultMark } from "./result";
import { save } from "./save";

const route = getRouteApi("/audit");

const columns: Column<AuditAction>[] = [
  { id: "begun", header: "When", width: 200, value: ({ begun }) => order(begun), cell: ({ begun }) => moment(begun) },
  { id: "user", header: "Who", width: 110, value: ({ user }) => user },
  { id: "action", header: "What", width: 160, value: ({ action }) => action },
  { id: "object", header: "Object", width: 260, value: ({ object }) => object },
  { id: "result", header: "Result", width: 110, value: ({ result }) => result, cell: ({ result }) => <StateMark state={resultMark(result)} word={result} /> },
  { id: "verb", header: "Verb", width: 90, value: ({ verb }) => verb },
  { id: "from", header: "From", width: 140, hidden: true, value: ({ from }) => from },
  { id: "plan", header: "Plan hash", width: 160, hidden: true, value: ({ planHash }) => planHash },
  { id: "error", header: "Why not", width: 300, value: ({ error }) => error },
];

const verbs = ["", "apply", "approve", "pause", "cancel", "rollback"];
const first: bigint[] = [0n];

/** AuditView is who did what, and what came of it. */
export function AuditView() {
  const { user = "", object = "", verb = "", since = "", until = "", action } = route.useSearch();
  const navigate = route.useNavigate();
  const [pages, setPages] = useState(first);
  const [waited] = useDebouncedValue({ user, object, verb, since, until }, 300);
  const question: AuditQuestion = waited;
  const audit = useAudit(question, pages.at(-1) ?? 0n);
  const narrow = (change: Partial<AuditQuestion>): void => {
    setPages(first);
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  };
  const open = (key: string | undefined): void => void navigate({ search: (before) => ({ ...before, action: key }) });
  const selected = audit.state?.actions.find(({ sequence }) => sequence.toString() === action);
  return (
    <Stack gap="sm">
      <title>Audit · Restripe</title>
      <h1>Audit</h1>
      <Group align="end" gap="xs">
        <TextInput size="xs" label="Who" value={user} onChange={(event) => narrow({ user: event.currentTarget.value })} />
        <TextInput size="xs" label="Object, or a part of its name" value={object} onChange={(event) => narrow({ object: event.currentTarget.value })} />
        <NativeSelect size="xs" label="Verb" value={verb} onChange={(event) => narrow({ verb: event.currentTarget.value })} data={verbs.map((value) => ({ value, label: value === "" ? "any" : value }))} />
        <Period since={since} until={until} onChange={narrow} />
        <Export question={question} />
      </Group>
      <Verification />
      <Beside label={`Action ${action ?? ""}`} onClose={() => open(undefined)} beside={selected === undefined ? undefined : <ActionDetail action={selected} />}>
        <Shown what="the audit log" following={audit} height={400}>
          {(state) => (
            <Stack gap="xs">
              <DataTable
                name="audit"
                label="actions"
                rows={state.actions}
                columns={columns}
                keyOf={({ sequence }) => sequence.toString()}
                selected={action}
                onSelect={open}
                empty={<Empty title="No action is recorded that matches">Every change that somebody makes here, or tries to, is recorded with what was there before and after.</Empty>}
              />
              <Group gap="xs">
                {pages.length > 1 && (
                  <Button size="xs" variant="default" onClick={() => setPages(pages.slice(0, -1))}>
                    Newer
                  </Button>
                )}
                {state.next > 0n && (
                  <Button size="xs" variant="default" onClick={() => setPages([...pages, state.next])}>
                    Older
                  </Button>
                )}
              </Group>
            </Stack>
          )}
        </Shown>
      </Beside>
    </Stack>
  );
}

function Export({ question }: { question: AuditQuestion }) {
  const collect = useAuditExport();
  return (
    <>
      <Button size="xs" variant="default" loading={collect.running} onClick={() => collect.run({ question, comma: false }, (file) => save(file, "restripe-audit.jsonl"))}>
        Export JSON lines
      </Button>
      <Button size="xs" variant="default" loading={collect.running} onClick={() => collect.run({ question, comma: true }, (file) => save(file, "restripe-audit.csv"))}>
        Export CSV
      </Button>
      {collect.problem !== undefined && <ProblemNote what="exporting the audit log" problem={collect.problem} />}
    </>
  );
}

function Verification() {
  const verify = useAuditVerification();
  const { answer, problem } = verify;
  return (
    <div>
      <Button size="compact-xs" variant="default" loading={verify.running} onClick={() => verify.run({ sequence: 0n, hash: "" })}>
        Verify the log
      </Button>
      <div aria-live="polite">
        {problem !== undefined && <ProblemNote what="verifying the audit log" problem={problem} />}
        {answer !== undefined && (
          <Alert mt="xs" color={answer.intact ? "green" : "red"} title={answer.intact ? `${counted(answer.records, "record")}, each as it was written` : "The log was changed"}>
            {answer.intact ? (
              <Text size="sm">
                Keep these elsewhere to prove later that nothing was cut off: sequence {answer.sequence.toString()}, hash {answer.hash === "" ? "none" : answer.hash}.
              </Text>
            ) : (
              <Text size="sm">{answer.problem}</Text>
            )}
          </Alert>
        )}
      </div>
    </div>
  );
}

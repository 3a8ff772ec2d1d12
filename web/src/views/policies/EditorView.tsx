import { Alert, Checkbox, Group, NativeSelect, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";

import { ActionButton } from "../../actions/ActionButton";
import { useApply, useDiff, useDraftPlan, useLint, usePolicy, type Draft } from "../../data/policies";
import { Format, type ApplyPolicyResponse, type Finding } from "../../gen/console/v1/policies_pb";
import { RouteLink } from "../../links/RouteLink";
import { Loading, ProblemNote, Shown } from "../../states/States";
import { PolicyPlanned } from "../plan/PolicyPlanned";
import { Differences } from "./Differences";
import { Findings } from "./Findings";
import styles from "./Policies.module.css";
import { readRules } from "./rules";
import { starter } from "./starter";
import { readRates } from "../../words/prices";
import { withPrices } from "./with-prices";
import { withRules } from "./with-rules";

const TextEditor = lazy(async () => ({ default: (await import("./TextEditor")).TextEditor }));

const route = getRouteApi("/policies/edit");

/** EditorView is where policies are written: mistakes at their place, what would change, and what would move. */
export function EditorView() {
  const { name, rules = "", prices = "" } = route.useSearch();
  const live = usePolicy(name ?? "");
  return (
    <Stack gap="md">
      <title>Policy editor · Restripe</title>
      <h1>{name === undefined ? "Write a policy" : `Edit policy ${name}`}</h1>
      {name === undefined ? (
        <Editor name="policy" start={starter} />
      ) : (
        <Shown what={`policy ${name}`} following={live} height={420}>
          {(state) => <Editor key={name} name={name} start={withPrices(withRules(state.yaml, readRules(rules)), readRates(prices))} />}
        </Shown>
      )}
    </Stack>
  );
}

/** How long nothing must be typed before the console is asked about it. */
const pauseMilliseconds = 400;

const none: Finding[] = [];

function Editor({ name, start }: { name: string; start: string }) {
  const [text, setText] = useState(start);
  const [format, setFormat] = useState(Format.YAML);
  const [chosen, setChosen] = useState<{ from: string; to: string }>();
  const [asked] = useDebouncedValue(text, pauseMilliseconds);
  const draft: Draft = { name, text: asked, format };
  const lint = useLint(draft);
  const findings = lint.state?.findings ?? none;
  const wrong = findings.some(({ severity }) => severity === "error");
  const known = lint.phase === "live" && text === asked;
  const [force, setForce] = useState(false);
  const diff = useDiff(draft, force, known && !wrong);
  const taken = diff.state?.findings.some((finding) => finding.taken) ?? false;
  const plan = useDraftPlan(draft, known && !wrong);
  const apply = useApply();
  const planHash = plan.state?.plans.map((one) => one.planHash).join(" ").trim() ?? "";
  const unchanged = diff.state?.findings.length === 0 && diff.state.differences.length === 0;
  return (
    <div className={styles.editor}>
      <Stack gap="sm" className={styles.pane}>
        <Group align="end" gap="xs">
          <NativeSelect
            size="xs"
            label="Language"
            value={String(format)}
            onChange={(event) => setFormat(event.currentTarget.value === String(Format.CUE) ? Format.CUE : Format.YAML)}
            data={[
              { value: String(Format.YAML), label: "YAML" },
              { value: String(Format.CUE), label: "CUE" },
            ]}
          />
          <ActionButton
            verb="apply"
            variant="filled"
            loading={apply.running}
            unless={!known ? "The text is being looked at." : wrong ? "The text has mistakes, which are listed below it." : taken ? "Fields belong to somebody else, as is said beside it." : unchanged ? "Nothing would change." : ""}
            onClick={() => apply.run({ ...draft, planHash, force })}
          >
            Apply
          </ActionButton>
        </Group>
        <Suspense fallback={<Loading label="the editor" height={420} />}>
          <TextEditor text={text} onChange={setText} findings={findings} format={format} label={`Text of ${name}`} />
        </Suspense>
        {lint.problem !== undefined && <ProblemNote what="looking for mistakes" problem={lint.problem} again={lint.again} />}
        <Findings findings={findings} known={known} />
        {apply.problem !== undefined && <ProblemNote what="applying" problem={apply.problem} />}
        {apply.answer !== undefined && <Result answer={apply.answer} />}
      </Stack>
      <Stack gap="lg" className={styles.pane}>
        <section aria-labelledby="difference">
          <h2 id="difference">What would change</h2>
          {wrong ? (
            <Text size="sm">The text has mistakes; it is compared when they are mended.</Text>
          ) : (
            <Shown what="the difference" following={diff} height={80}>
              {(state) => (
                <>
                  <Findings findings={state.findings} known={false} />
                  {(taken || force) && (
                    <Checkbox
                      my="sm"
                      label="Take these fields over"
                      description="They belong to whoever applied them first, such as restripe apply or kubectl, who then has to take them back the same way."
                      checked={force}
                      onChange={(event) => setForce(event.currentTarget.checked)}
                    />
                  )}
                  <Differences differences={state.differences} />
                </>
              )}
            </Shown>
          )}
        </section>
        <section aria-labelledby="dry-run">
          <h2 id="dry-run">What would move</h2>
          {wrong ? (
            <Text size="sm">The text has mistakes; it is planned when they are mended.</Text>
          ) : (
            <Shown what="the plan" following={plan} height={240}>
              {(state) => (
                <Stack gap="lg">
                  {state.plans.map((one) => (
                    <div key={one.policy}>
                      <h3>{one.policy}</h3>
                      <PolicyPlanned plan={one} ladder={one.ladder} chosen={chosen} onChoose={setChosen} />
                    </div>
                  ))}
                </Stack>
              )}
            </Shown>
          )}
        </section>
      </Stack>
    </div>
  );
}

function Result({ answer }: { answer: ApplyPolicyResponse }) {
  const refused = answer.findings.filter(({ severity }) => severity === "error");
  if (refused.length > 0) {
    return (
      <Alert color="red" title="That was not applied" role="alert">
        <Findings findings={refused} known={false} />
      </Alert>
    );
  }
  return (
    <Alert color="green" title="Applied" role="status">
      {answer.applied.map(({ object, outcome }) => (
        <Text key={object} size="sm">
          {object} {outcome}.
        </Text>
      ))}
      <RouteLink to="/transitions">See what moves</RouteLink>
    </Alert>
  );
}

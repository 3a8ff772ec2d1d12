import { Button, Group, PasswordInput, Stack, Text } from "@mantine/core";
import { useState } from "react";

import { useAbout, useToken, useWhoAmI } from "../../data/about";
import { Shown } from "../../states/States";
import { money } from "../../words/money";
import facts from "../transitions/Transitions.module.css";

/** SettingsView is who one is here, and by which settings the console works. */
export function SettingsView() {
  return (
    <Stack gap="lg">
      <title>Settings · Restripe</title>
      <h1>Settings</h1>
      <Identity />
      <Working />
    </Stack>
  );
}

const howText: Record<string, string> = {
  local: "everybody who reaches this address is the user of that machine",
  token: "by the token you entered",
  cluster: "by your token of the cluster",
};

function Identity() {
  const who = useWhoAmI();
  const token = useToken();
  const [entered, setEntered] = useState("");
  return (
    <section aria-labelledby="identity">
      <h2 id="identity">Who you are</h2>
      <Shown what="who you are" following={who} height={90}>
        {(state) => (
          <dl className={facts.facts}>
            <dt>User</dt>
            <dd>{state.user}</dd>
            <dt>Known</dt>
            <dd>{howText[state.by] ?? state.by}</dd>
            <dt>Verbs</dt>
            <dd>{state.verbs.length === 0 ? "none" : state.verbs.join(", ")}</dd>
          </dl>
        )}
      </Shown>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          token.set(entered.trim());
          setEntered("");
        }}
      >
        <Group align="end" gap="xs" mt="sm">
          <PasswordInput size="xs" w={320} label="Token" description="Kept by this tab until it is closed" value={entered} onChange={(event) => setEntered(event.currentTarget.value)} visibilityToggleButtonProps={{ "aria-label": "Show the token" }} />
          <Button type="submit" size="xs" disabled={entered.trim() === ""}>
            Use it
          </Button>
          {token.present && (
            <Button size="xs" variant="default" onClick={() => token.set("")}>
              Forget it
            </Button>
          )}
        </Group>
      </form>
    </section>
  );
}

function Working() {
  const about = useAbout();
  return (
    <section aria-labelledby="working">
      <h2 id="working">How the console works</h2>
      <Text size="sm">These are set where the console is started.</Text>
      <Shown what="the settings" following={about} height={200}>
        {(state) => (
          <dl className={facts.facts}>
            <dt>Looks at gateways</dt>
            <dd>every {state.lookSeconds} s</dd>
            <dt>Samples heat and sizes</dt>
            <dd>
              every {state.sampleSeconds} s; {state.historySamples.toLocaleString()} samples are kept in all
            </dd>
            <dt>Audit log</dt>
            <dd>{state.auditDirectory === "" ? "not kept" : state.auditDirectory}</dd>
            {state.prices !== undefined && (
              <>
                <dt>Price of a GiB stored for a month</dt>
                <dd>{money(state.prices.storageGibMonth)}</dd>
                <dt>Price of a GiB sent</dt>
                <dd>{money(state.prices.networkGib)}</dd>
                <dt>Price of a million operations</dt>
                <dd>{money(state.prices.millionOperations)}</dd>
                <dt>A transition must pay within</dt>
                <dd>{state.prices.paybackMonths} months</dd>
              </>
            )}
          </dl>
        )}
      </Shown>
      <Text size="sm" c="dimmed">
        The prices are those of policies that declare none; a policy changes them under prices.
      </Text>
    </section>
  );
}

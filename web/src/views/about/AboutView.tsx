import { Group, Stack, Text } from "@mantine/core";

import { useAbout } from "../../data/about";
import type { Backend, Scheme } from "../../gen/console/v1/about_pb";
import { counted, sized } from "../../pictures/amount";
import { SchemeShape } from "../../pictures/SchemeShape";
import { Shown } from "../../states/States";
import { moment } from "../../words/time";
import { Conditions } from "../transitions/Conditions";
import facts from "../transitions/Transitions.module.css";

/** AboutView is what serves these pages, and what it is connected to. */
export function AboutView() {
  const about = useAbout();
  return (
    <Stack gap="lg">
      <title>About · Restripe</title>
      <h1>About</h1>
      <Text size="sm">Restripe keeps objects over stores you already have and re-stripes them in place, as they cool and warm up. Its licence is Apache-2.0.</Text>
      <Shown what="what serves these pages" following={about} height={300}>
        {(state) => (
          <>
            <dl className={facts.facts}>
              <dt>Version</dt>
              <dd>{state.version}</dd>
              <dt>Started</dt>
              <dd>{moment(state.started)}</dd>
              <dt>API server</dt>
              <dd>{state.apiServer}</dd>
              <dt>Who callers are</dt>
              <dd>{{ local: "everybody who reaches it is the user of its machine", tokens: "its file of tokens says", cluster: "the cluster says" }[state.authentication] ?? state.authentication}</dd>
            </dl>
            <section aria-labelledby="backends">
              <h2 id="backends">Backends</h2>
              {state.backends.length === 0 && <Text size="sm">No StorageBackend is declared.</Text>}
              <Stack gap="md">
                {state.backends.map((backend) => (
                  <BackendFacts key={backend.name} backend={backend} />
                ))}
              </Stack>
            </section>
            <Schemes schemes={state.schemes} />
          </>
        )}
      </Shown>
    </Stack>
  );
}

function BackendFacts({ backend }: { backend: Backend }) {
  return (
    <div>
      <h3>{backend.name}</h3>
      <dl className={facts.facts}>
        <dt>Stores</dt>
        <dd>{backend.type}</dd>
        <dt>Gateways</dt>
        <dd>{backend.gateways.join(", ")}</dd>
        <dt>Used</dt>
        <dd>
          {sized(backend.usedBytes)} of {backend.capacityBytes === 0n ? "a capacity that is not known" : `${sized(backend.capacityBytes)}, with whatever else is on the disks of its nodes`}
        </dd>
        {backend.cluster !== "" && (
          <>
            <dt>Cluster</dt>
            <dd>{backend.cluster}</dd>
          </>
        )}
      </dl>
      <Conditions conditions={backend.conditions} />
    </div>
  );
}

function Schemes({ schemes }: { schemes: Scheme[] }) {
  return (
    <section aria-labelledby="schemes">
      <h2 id="schemes">Named schemes</h2>
      {schemes.length === 0 ? (
        <Text size="sm">No RedundancyScheme is declared; policies name codes themselves.</Text>
      ) : (
        schemes.map((scheme) => (
          <Group key={scheme.name} gap="sm">
            <strong>{scheme.name}</strong>
            <SchemeShape scheme={scheme.code} />
            <Text size="sm">
              can lose {counted(scheme.canLose, "node")}, stores {scheme.overhead} of each byte, in {scheme.policies === 1 ? "1 policy" : `${scheme.policies} policies`}
            </Text>
          </Group>
        ))
      )}
    </section>
  );
}

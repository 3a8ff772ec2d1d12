import { Group, NativeSelect, Stack, Text } from "@mantine/core";
import { Fragment, useState } from "react";

import { ActionButton } from "../../actions/ActionButton";
import { Outcome } from "../../actions/Outcome";
import { useMoveObject, useObjectLayout } from "../../data/objects";
import type { Group as StoredGroup, Object$ as Stored } from "../../gen/console/v1/objects_pb";
import { RouteLink } from "../../links/RouteLink";
import { counted, sized } from "../../pictures/amount";
import { GroupLayout } from "../../pictures/GroupLayout";
import { groupFromApi } from "../../pictures/group-layout-from-api";
import { SchemeShape } from "../../pictures/SchemeShape";
import { Shown } from "../../states/States";
import { moment } from "../../words/time";
import facts from "../transitions/Transitions.module.css";
import { rungsOf } from "./rungs";

/** ObjectDetail is where one object lies, and how it can be moved. */
export function ObjectDetail({ backend, objectKey, name }: { backend: string; objectKey: Uint8Array; name: string }) {
  const layout = useObjectLayout({ backend, key: objectKey });
  return (
    <Shown what={`object ${name}`} following={layout} height={320}>
      {({ object, groups }) => (object === undefined ? null : <Known object={object} groups={groups} />)}
    </Shown>
  );
}

const groupsShown = 8;

function Known({ object, groups }: { object: Stored; groups: StoredGroup[] }) {
  const move = useMoveObject();
  const rungs = rungsOf(groups[0]?.ladder ?? "");
  const [to, setTo] = useState("");
  return (
    <Stack gap="md">
      <div>
        <h2 className={facts.name}>{object.key}</h2>
        <Group gap="sm">
          <SchemeShape scheme={object.scheme} />
          <Text size="sm">{sized(object.size)}</Text>
        </Group>
      </div>
      <dl className={facts.facts}>
        <dt>Class</dt>
        <dd>{object.class}</dd>
        <dt>Changed</dt>
        <dd>{moment(object.modified)}</dd>
        {object.expires !== undefined && (
          <>
            <dt>Expires</dt>
            <dd>{moment(object.expires)}</dd>
          </>
        )}
        {Object.entries(object.metadata)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, value]) => (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </Fragment>
          ))}
        {object.earlier.length > 0 && (
          <>
            <dt>Earlier versions</dt>
            {object.earlier.map((revision) => (
              <dd key={revision}>{revision}</dd>
            ))}
          </>
        )}
        <dt>Groups</dt>
        <dd>{counted(groups.length, "group")}</dd>
        <dt>Ladder</dt>
        <dd>{rungs.join(", ")}</dd>
      </dl>
      <Group align="end" gap="xs">
        <NativeSelect size="xs" label="Move it to" value={to} onChange={(event) => setTo(event.currentTarget.value)} data={[{ value: "", label: "choose a scheme" }, ...rungs.filter((rung) => rung !== object.scheme).map((rung) => ({ value: rung, label: rung }))]} />
        <ActionButton verb="apply" loading={move.running} unless={to === "" ? "Choose a scheme of its ladder." : ""} onClick={() => move.run({ backend: object.backend, key: object.keyBytes, to })}>
          Move
        </ActionButton>
        {to !== "" && (
          <RouteLink to="/plan" search={{ from: object.scheme, to }}>
            What that does
          </RouteLink>
        )}
      </Group>
      <Outcome actions={[move]} />
      {move.answer?.transition !== undefined && (
        <RouteLink to="/transitions" search={{ name: move.answer.transition.name }}>
          {move.answer.transition.name}
        </RouteLink>
      )}
      <section>
        <h3>Where it lies</h3>
        {groups.slice(0, groupsShown).map((group) => (
          <GroupLayout key={group.id} group={groupFromApi(group)} />
        ))}
        {groups.length > groupsShown && <Text size="sm">and {counted(groups.length - groupsShown, "more group")}, laid out alike.</Text>}
        {groups.length === 0 && <Text size="sm">The object is empty, so it has no group.</Text>}
      </section>
    </Stack>
  );
}

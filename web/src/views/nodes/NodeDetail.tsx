import { Group, Stack, Text } from "@mantine/core";
import { useState } from "react";

import { ActionButton } from "../../actions/ActionButton";
import { ConfirmByName } from "../../actions/ConfirmByName";
import { Outcome } from "../../actions/Outcome";
import { useNodeSteering } from "../../data/nodes";
import type { Node } from "../../gen/console/v1/nodes_pb";
import { counted, rated, sized } from "../../pictures/amount";
import { ProgressBar } from "../../pictures/ProgressBar";
import { StateMark } from "../../pictures/StateMark";
import { sentence } from "../../words/sentence";
import { moment } from "../../words/time";
import facts from "../transitions/Transitions.module.css";
import { slotsGone, slotsMoved } from "./drain";
import { Replace } from "./Replace";

/** NodeDetail is one node, and what can be done to it. */
export function NodeDetail({ node, name, alone }: { node: Node | undefined; name: string; alone: boolean }) {
  const steering = useNodeSteering();
  const [asking, setAsking] = useState<"drain" | "down" | "remove" | "replace">();
  if (node === undefined) {
    return (
      <Stack>
        <h2 className={facts.name}>{name}</h2>
        <Text size="sm">There is no such node any more.</Text>
        <Outcome actions={Object.values(steering)} />
      </Stack>
    );
  }
  const of = { node: { backend: node.backend, name: node.name } };
  const draining = node.declared === "draining";
  const close = (): void => setAsking(undefined);
  const slots = node.slots < 0n ? "slots, which are not counted yet," : counted(node.slots, "slot");
  return (
    <Stack gap="md">
      <div>
        <h2 className={facts.name}>{node.name}</h2>
        <StateMark state={node.state} />
        {node.fenced && (
          <Text size="sm">{node.state === "out" ? "Fenced: should it come back, it takes no blocks until its store was swept." : "Fenced: it came back, and takes no blocks until its store was swept."}</Text>
        )}
        {node.warnings.map((warning) => (
          <Text key={warning} size="sm">
            {sentence(warning)}
          </Text>
        ))}
      </div>
      {node.drain !== undefined && (
        <ProgressBar
          label={`Emptying of ${node.name}`}
          done={slotsGone(node.drain)}
          total={node.drain.slotsTotal}
          amount={slotsMoved}
          secondsLeft={node.drain.etaSeconds}
          paused={node.drain.paused ? "" : undefined}
        />
      )}
      <Group gap="xs">
        {!draining && (
          <ActionButton verb="apply" loading={steering.drain.running} onClick={() => setAsking("drain")}>
            Drain…
          </ActionButton>
        )}
        {draining && (
          <>
            <ActionButton verb="apply" loading={steering.drain.running} onClick={() => steering.drain.run({ ...of, paused: node.drain?.paused !== true })}>
              {node.drain?.paused === true ? "Go on draining" : "Pause draining"}
            </ActionButton>
            <ActionButton verb="apply" loading={steering.undrain.running} onClick={() => steering.undrain.run(of)}>
              End draining
            </ActionButton>
          </>
        )}
        {node.declared === "down" ? (
          <ActionButton verb="apply" loading={steering.up.running} onClick={() => steering.up.run(of)}>
            Declare up
          </ActionButton>
        ) : (
          <ActionButton verb="apply" color="red" variant="outline" loading={steering.down.running} onClick={() => setAsking("down")}>
            Declare down…
          </ActionButton>
        )}
        <ActionButton verb="apply" loading={steering.replace.running} onClick={() => setAsking("replace")}>
          Replace…
        </ActionButton>
        <ActionButton verb="apply" loading={steering.place.running} onClick={() => steering.place.run({ ...of, spare: !node.spare })}>
          {node.spare ? "Make it a member" : "Make it a spare"}
        </ActionButton>
        <ActionButton verb="apply" color="red" variant="outline" loading={steering.remove.running} unless={node.slots > 0n ? `It still has ${slots} of groups; drain it first.` : ""} onClick={() => setAsking("remove")}>
          Remove…
        </ActionButton>
      </Group>
      <Outcome actions={Object.values(steering)} />
      <dl className={facts.facts}>
        <dt>Backend</dt>
        <dd>{node.backend}</dd>
        <dt>Address</dt>
        <dd>{node.address}</dd>
        <dt>Fails with</dt>
        <dd>{alone ? "no other node" : `every node of ${node.failureDomain}`}</dd>
        {node.release !== "" && (
          <>
            <dt>Release</dt>
            <dd>{node.release}</dd>
          </>
        )}
        <dt>Store</dt>
        <dd>
          {node.storeKind}, {node.durable ? "durable" : "not durable: it forgets when it stops"}
        </dd>
        <dt>Used</dt>
        <dd>
          {sized(node.usedBytes)} of {node.capacityBytes === 0n ? "a capacity that is not known" : sized(node.capacityBytes)}, in {slots}
        </dd>
        {node.rates !== undefined && node.state === "up" && (
          <>
            <dt>Now</dt>
            <dd>
              reads {rated(node.rates.read)}, sends {rated(node.rates.sent)} to other nodes, writes {rated(node.rates.written)}
            </dd>
          </>
        )}
        {node.since !== undefined && (
          <>
            <dt>{node.state} since</dt>
            <dd>{moment(node.since)}</dd>
          </>
        )}
        {node.drain !== undefined && (
          <>
            <dt>Emptied at</dt>
            <dd>{node.drain.bytesPerSecond === 0n ? "no limit" : `${rated(node.drain.bytesPerSecond)} at most`}</dd>
          </>
        )}
        {node.outBy !== "" && (
          <>
            <dt>Out by</dt>
            <dd>{node.outBy}</dd>
          </>
        )}
        {node.replaces !== "" && (
          <>
            <dt>Replaces</dt>
            <dd>{node.replaces}</dd>
          </>
        )}
      </dl>
      <ConfirmByName
        opened={asking === "drain"}
        onClose={close}
        action="Drain node"
        name={node.name}
        consequence={`Every block of its ${slots} moves to other nodes. It stays readable meanwhile, and it can be ended at any time.`}
        onConfirm={() => steering.drain.run(of)}
      />
      <ConfirmByName
        opened={asking === "down"}
        onClose={close}
        action="Declare down"
        name={node.name}
        consequence={`The node is not expected back: what its ${slots} hold is rebuilt on other nodes from what is left, and until then groups can lose one node less.`}
        onConfirm={() => steering.down.run(of)}
      />
      <ConfirmByName
        opened={asking === "remove"}
        onClose={close}
        action="Remove node"
        name={node.name}
        consequence="The node is no member any more and is forgotten."
        onConfirm={() => steering.remove.run({ ...of, confirm: node.name })}
      />
      <Replace opened={asking === "replace"} onClose={close} node={node} onReplace={(how) => steering.replace.run({ ...of, ...how })} />
    </Stack>
  );
}

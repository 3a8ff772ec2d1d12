import { Group, Stack, Text } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { ActionButton } from "../../actions/ActionButton";
import { Outcome } from "../../actions/Outcome";
import { useNodeAdding } from "../../data/balances";
import { nodeKey, useNodes } from "../../data/nodes";
import { useOverview } from "../../data/overview";
import type { Node } from "../../gen/console/v1/nodes_pb";
import { counted, sized, sizedOf } from "../../pictures/amount";
import { StateMark } from "../../pictures/StateMark";
import { Empty, Shown } from "../../states/States";
import { Beside } from "../../table/Beside";
import { DataTable, type Column } from "../../table/DataTable";
import { badness } from "../../words/node-state";
import { Health } from "../overview/Health";
import { AddNode } from "./AddNode";
import { Balances } from "./Balances";
import { Capacity } from "./Capacity";
import { Compactions } from "./Compactions";
import { Domains } from "./Domains";
import { NodeDetail } from "./NodeDetail";
import { Scrubs } from "./Scrubs";
import { workOf, workWords } from "./work";

const route = getRouteApi("/nodes");

const columns: Column<Node>[] = [
  { id: "name", header: "Name", width: 90, value: ({ name }) => name },
  { id: "state", header: "State", width: 130, value: ({ state }) => state, cell: ({ state, fenced }) => <StateMark state={state} word={fenced ? `${state}, fenced` : state} /> },
  { id: "domain", header: "Failure domain", width: 135, value: ({ failureDomain }) => failureDomain },
  { id: "spare", header: "Role", width: 80, value: ({ spare }) => (spare ? "spare" : "member") },
  { id: "used", header: "Used", width: 175, value: ({ usedBytes }) => usedBytes, cell: (node) => <Capacity node={node} /> },
  { id: "work", header: "Reads, sends, writes", width: 230, numeric: true, value: workOf, cell: ({ rates }) => workWords(rates) },
  { id: "slots", header: "Slots", width: 80, numeric: true, value: ({ slots }) => (slots < 0n ? "?" : slots) },
  { id: "drain", header: "Emptying", width: 150, value: ({ drain }) => drain?.slotsLeft ?? 0n, cell: ({ drain }) => (drain === undefined ? "" : (drain.slotsLeft < 0n ? "being counted" : `${counted(drain.slotsLeft, "slot")} left`)) },
  { id: "store", header: "Store", width: 100, value: ({ storeKind, durable }) => `${storeKind}${durable ? "" : ", not durable"}` },
  { id: "address", header: "Address", width: 160, value: ({ address }) => address },
  { id: "backend", header: "Backend", width: 100, value: ({ backend }) => backend },
  { id: "warnings", header: "Warnings", width: 260, value: ({ warnings }) => warnings.join("; ") },
];

/** NodesView is where blocks are, whether the nodes are well, what scrubs found, and what small objects leave behind. */
export function NodesView() {
  const { name } = route.useSearch();
  const navigate = route.useNavigate();
  const nodes = useNodes();
  const overview = useOverview().state;
  const adding = useNodeAdding();
  const [isAdding, setIsAdding] = useState(false);
  const backends = overview?.backends.map(({ backend }) => backend) ?? [];
  const rows = useMemo(() => [...(nodes.state?.items.values() ?? [])].sort((a, b) => badness(a.state) - badness(b.state) || nodeKey(a).localeCompare(nodeKey(b), "en", { numeric: true })), [nodes.state]);
  const open = (key: string | undefined): void => void navigate({ search: key === undefined ? {} : { name: key } });
  const selected = name === undefined ? undefined : nodes.state?.items.get(name);
  return (
    <Stack gap="lg">
      <title>Nodes · Restripe</title>
      <h1>Nodes</h1>
      {overview !== undefined && <Health overview={overview} />}
      <Beside
        label={`Node ${name ?? ""}`}
        onClose={() => open(undefined)}
        beside={name === undefined || nodes.state === undefined ? undefined : <NodeDetail key={name} node={selected} name={name} alone={rows.filter((one) => one.backend === selected?.backend && one.failureDomain === selected.failureDomain).length < 2} />}
      >
        <Shown what="nodes" following={nodes} height={400}>
          {() => (
            <Stack gap="sm">
              <Group justify="space-between">
                <Used nodes={rows} />
                <ActionButton verb="apply" loading={adding.add.running} unless={backends.length === 0 ? "No backend is known." : ""} onClick={() => setIsAdding(true)}>
                  Add a node…
                </ActionButton>
              </Group>
              <Outcome actions={[adding.add]} />
              <DataTable
                name="nodes"
                label="nodes"
                rows={rows}
                columns={columns}
                keyOf={nodeKey}
                selected={name}
                onSelect={open}
                rowHeight={40}
                empty={
                  <Empty title="No node is known" command="restripe up --agents 14">
                    Nodes come with a StorageBackend and its gateways. On this machine:
                  </Empty>
                }
              />
            </Stack>
          )}
        </Shown>
      </Beside>
      {isAdding && <AddNode backends={backends} adding={adding} onClose={() => setIsAdding(false)} />}
      <Domains nodes={rows} />
      <Balances />
      <Scrubs />
      <Compactions />
    </Stack>
  );
}

function Used({ nodes }: { nodes: Node[] }) {
  // Nodes that share a file system count it once.
  const disks = [...new Map(nodes.map((node) => [node.volume || nodeKey(node), node])).values()];
  const used = disks.reduce((sum, { usedBytes }) => sum + usedBytes, 0n);
  const unknown = nodes.filter(({ capacityBytes }) => capacityBytes === 0n).length;
  const capacity = disks.reduce((sum, { capacityBytes }) => sum + capacityBytes, 0n);
  const where = `used on ${counted(nodes.length, "node")}${disks.length < nodes.length ? `, with whatever else is on the ${counted(disks.length, "disk")} that they share` : ""}`;
  return <Text size="sm">{unknown === 0 ? `${sizedOf(used, capacity)} ${where}.` : `${sized(used)} ${where}; of ${unknown} the capacity is not known.`}</Text>;
}

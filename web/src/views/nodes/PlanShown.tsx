import { Stack, Table, Text } from "@mantine/core";

import type { BalanceNode, BalancePlan } from "../../gen/console/v1/balance_pb";
import { sized } from "../../pictures/amount";
import { sentence } from "../../words/sentence";

/** mostShown is how many nodes of a plan are listed, those first that it changes most. */
const mostShown = 8;

/** PlanShown is what a balance would move, and what nodes hold before and after. */
export function PlanShown({ plan }: { plan: BalancePlan }) {
  const nodes = [...plan.nodes].sort((a, b) => Number(changed(b) - changed(a)) || a.name.localeCompare(b.name, "en", { numeric: true }));
  const more = nodes.length - mostShown;
  return (
    <Stack gap="xs">
      <Text size="sm" fw={600}>
        {sentence(plan.said)}
      </Text>
      {plan.note !== "" && <Text size="sm">{sentence(plan.note)}</Text>}
      {!plan.even && (
        <Table aria-label="What nodes would hold" fz="sm" verticalSpacing={2}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Node</Table.Th>
              <Table.Th ta="right">Holds</Table.Th>
              <Table.Th ta="right">Then holds</Table.Th>
              <Table.Th ta="right">Its share</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {nodes.slice(0, mostShown).map((node) => (
              <Table.Tr key={node.name}>
                <Table.Td>
                  {node.name}
                  {node.note !== "" && `, ${node.note}`}
                </Table.Td>
                <Table.Td ta="right">{sized(node.bytesBefore)}</Table.Td>
                <Table.Td ta="right">{sized(node.bytesAfter)}</Table.Td>
                <Table.Td ta="right">{sized(node.fairBytes)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {!plan.even && more > 0 && <Text size="sm">{more === 1 ? "One node more changes less." : `${more} nodes more change less.`}</Text>}
    </Stack>
  );
}

function changed({ bytesBefore, bytesAfter }: BalanceNode): bigint {
  return bytesAfter < bytesBefore ? bytesBefore - bytesAfter : bytesAfter - bytesBefore;
}

import { Stack, Table, Text } from "@mantine/core";

import type { TemperatureChoice } from "../../gen/console/v1/heat_pb";
import { money } from "../../words/money";
import { moment } from "../../words/time";

/** Choice is who chooses the steps of a class's groups, and what others would have cost over the same time. */
export function Choice({ choice }: { choice: TemperatureChoice }) {
  return (
    <section aria-labelledby="choice">
      <h3 id="choice">Who chooses</h3>
      <Stack gap="xs">
        {choice.byRules ? (
          <Text size="sm">The rules of the policy place groups.</Text>
        ) : (
          <Text size="sm">
            Groups are where they cost least (mode auto). Since {moment(choice.since)} they are placed <strong>{choice.leader}</strong>: {choice.reason}.
          </Text>
        )}
        {choice.days === 0 ? (
          <Text size="sm">Candidates are compared once a day; nothing is known of what others would cost yet.</Text>
        ) : (
          <>
            <Text size="sm">
              Paid {money(choice.paid)} since {moment(choice.countedSince)}
              {choice.bestFixed === "" ? "" : `, ${money(Math.abs(choice.savedPerMonth))} a month ${choice.savedPerMonth < 0 ? "more" : "less"} than ${choice.bestFixed} would have cost`}; compared last {moment(choice.lookedAt)}.
            </Text>
            <Ways choice={choice} />
          </>
        )}
      </Stack>
    </section>
  );
}

function Ways({ choice }: { choice: TemperatureChoice }) {
  return (
    <Table.ScrollContainer minWidth={480}>
      <Table aria-label="What others would have cost">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Choosing</Table.Th>
            <Table.Th ta="right">Would have cost</Table.Th>
            <Table.Th ta="right">Of what was paid</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          <Row text="what was done" paid={choice.paid} of={choice.paid} leads={false} />
          {choice.ways.map(({ text, paid, leads }) => (
            <Row key={text} text={text} paid={paid} of={choice.paid} leads={leads} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Row({ text, paid, of, leads }: { text: string; paid: number; of: number; leads: boolean }) {
  return (
    <Table.Tr>
      <Table.Td>
        {text}
        {leads && <strong> · leads</strong>}
      </Table.Td>
      <Table.Td ta="right">{money(paid)}</Table.Td>
      <Table.Td ta="right">{of === 0 ? "–" : `${(paid / of).toFixed(2)}×`}</Table.Td>
    </Table.Tr>
  );
}

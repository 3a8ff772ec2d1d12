import { Group, Stack, Text } from "@mantine/core";
import { useState } from "react";

import { ActionButton } from "../../actions/ActionButton";
import { Outcome } from "../../actions/Outcome";
import { useBalances, useBalanceSteering } from "../../data/balances";
import type { Balance } from "../../gen/console/v1/balance_pb";
import { counted, rated, sized } from "../../pictures/amount";
import { ProgressBar } from "../../pictures/ProgressBar";
import { Shown } from "../../states/States";
import { sentence } from "../../words/sentence";
import { moment } from "../../words/time";
import { BalanceDialog } from "./BalanceDialog";

/** Balances is how far blocks are being moved until every node holds its share, and steers that. */
export function Balances() {
  const balances = useBalances();
  return (
    <section aria-labelledby="balances">
      <h2 id="balances">Balance of nodes</h2>
      <Shown what="balances" following={balances} height={100}>
        {(state) => (
          <Stack gap="md">
            {state.balances.map((one) => (
              <OfBackend key={one.backend} balance={one} />
            ))}
            {state.balances.length === 0 && <Text size="sm">No gateway tells of a balance.</Text>}
          </Stack>
        )}
      </Shown>
    </section>
  );
}

function OfBackend({ balance: one }: { balance: Balance }) {
  const steering = useBalanceSteering();
  const [asking, setAsking] = useState(false);
  const of = { backend: one.backend };
  const paused = one.state === "paused";
  const underWay = paused || one.state === "running";
  return (
    <Stack gap="xs">
      <Text size="sm">
        {one.backend}: {one.number === 0n ? "nodes were not balanced yet." : <Done balance={one} />}
      </Text>
      {[one.waits === "" ? "" : `waits: ${one.waits}`, one.note, one.error].map((text) => text !== "" && <Text size="sm" key={text}>{sentence(text)}</Text>)}
      {underWay && (
        <ProgressBar
          label={`Balance of ${one.backend}`}
          done={one.bytesMoved}
          total={one.planned ? one.bytesTotal : 0n}
          secondsLeft={one.etaSeconds}
          paused={paused ? "" : undefined}
          counting={!one.planned}
        />
      )}
      <Group gap="xs">
        {underWay && (
          <>
            {paused ? (
              <ActionButton verb="pause" variant="filled" loading={steering.resume.running} onClick={() => steering.resume.run(of)}>
                Resume balance
              </ActionButton>
            ) : (
              <ActionButton verb="pause" loading={steering.pause.running} onClick={() => steering.pause.run(of)}>
                Pause balance
              </ActionButton>
            )}
            <ActionButton verb="pause" loading={steering.cancel.running} onClick={() => steering.cancel.run(of)}>
              Cancel balance
            </ActionButton>
          </>
        )}
        <ActionButton verb="apply" loading={steering.start.running} onClick={() => setAsking(true)}>
          {underWay ? "Change rate…" : "Balance…"}
        </ActionButton>
      </Group>
      <Outcome actions={Object.values(steering)} />
      {asking && <BalanceDialog balance={one} start={steering.start} onClose={() => setAsking(false)} />}
    </Stack>
  );
}

/** Done is what became of a balance so far. */
function Done({ balance: one }: { balance: Balance }) {
  return (
    <>
      balance {one.number.toLocaleString("en")} is {one.state}
      {one.finished !== undefined && `, ended ${moment(one.finished)}`}; {sized(one.bytesMoved)} moved in {counted(one.slotsMoved, "slot")}, {one.bytesPerSecond === 0n ? "without a limit" : `at ${rated(one.bytesPerSecond)} at most`}.
    </>
  );
}

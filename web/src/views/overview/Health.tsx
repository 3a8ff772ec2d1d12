import { Stack, Text } from "@mantine/core";

import type { BackendHealth, NodeCounts, Overview } from "../../gen/console/v1/overview_pb";
import { counted, rated } from "../../pictures/amount";
import { ProgressBar } from "../../pictures/ProgressBar";
import { StateMark } from "../../pictures/StateMark";
import { latency } from "../../words/latency";
import { RouteLink } from "../../links/RouteLink";

/** Health is how nodes and backends are, and what clients feel of them. */
export function Health({ overview }: { overview: Overview }) {
  return (
    <section aria-labelledby="health">
      <h2 id="health">Health</h2>
      {overview.nodes !== undefined && (
        <Text size="sm">
          <RouteLink to="/nodes">
            {counted(overview.nodes.total, "node")}
          </RouteLink>
          {statesOf(overview.nodes)}
          {overview.unknownSince !== undefined && " (as last heard)"}
        </Text>
      )}
      <Stack gap="sm" mt="xs">
        {overview.backends.map((backend) => (
          <Backend key={backend.backend} health={backend} />
        ))}
        {overview.backends.length === 0 && <Text size="sm">No StorageBackend is declared.</Text>}
      </Stack>
    </section>
  );
}

function statesOf({ byState }: NodeCounts): string {
  const parts = Object.entries(byState).map(([state, count]) => `${count} ${state}`);
  return parts.length === 0 ? "" : `: ${parts.join(", ")}`;
}

function Backend({ health }: { health: BackendHealth }) {
  const { repair, load } = health;
  return (
    <div>
      <StateMark state={health.state} word={`${health.backend}: ${health.state}`} />
      <Text size="sm">{health.line}</Text>
      {repair !== undefined && repair.groupsTotal > repair.groupsDone && (
        <ProgressBar label={`Repair of ${health.backend}`} done={repair.bytesDone} total={repair.bytesTotal} secondsLeft={repair.etaSeconds} />
      )}
      {repair !== undefined && repair.problem !== "" && <Text size="sm">{repair.problem}</Text>}
      {load !== undefined && (
        <Text size="sm" c="dimmed">
          {load.windowSeconds > 0
            ? `In the last ${Math.round(load.windowSeconds)} s: ${counted(load.requests, "request")}${load.requests > 0n ? `, half of them within ${latency(load.p50Seconds)}, 99 of 100 within ${latency(load.p99Seconds)}` : ""}; transitions move ${rated(Math.round(load.transitionBytesPerSecond))}.`
            : "Nothing is known yet of what clients ask for."}
        </Text>
      )}
    </div>
  );
}

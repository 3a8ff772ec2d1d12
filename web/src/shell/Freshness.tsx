import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Alert, Button, Text } from "@mantine/core";

import type { Following } from "../data/console";
import type { Overview } from "../gen/console/v1/overview_pb";
import { RouteLink } from "../links/RouteLink";

/** Freshness says on every page when what is shown is not what is, and since when. */
export function Freshness({ overview }: { overview: Following<Overview> }) {
  const { phase, problem, heard, state, again } = overview;
  if (phase === "broken" && problem?.kind === "unknown-user") {
    return (
      <Alert color="red" mb="md" title="The console does not know who you are" role="alert">
        {problem.text} Enter a token under{" "}
        <RouteLink to="/settings">
          Settings
        </RouteLink>
        .
      </Alert>
    );
  }
  if (phase === "broken" && problem?.kind !== "denied") {
    const since = heard === undefined ? "It has not been heard yet." : `Everything below is as it was at ${heard.toLocaleTimeString()}.`;
    return (
      <Alert color="red" mb="md" title="Disconnected from the console" role="alert">
        <Text size="sm">
          {problem?.text} {since} It is asked again by itself.
        </Text>
        <Button size="compact-xs" variant="default" mt="xs" onClick={again}>
          Ask now
        </Button>
      </Alert>
    );
  }
  const stale = state?.sources.filter((source) => source.staleSince !== undefined) ?? [];
  if (stale.length === 0) return null;
  return (
    <Alert color="yellow" mb="md" title="Some of this is not up to date" role="status">
      {stale.map((source) => (
        <Text key={source.name} size="sm">
          {source.name} has not answered since {source.staleSince && timestampDate(source.staleSince).toLocaleTimeString()}: {source.error}
        </Text>
      ))}
    </Alert>
  );
}

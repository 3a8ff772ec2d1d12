import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Flex, Text } from "@mantine/core";

import { Safety, type Overview } from "../../gen/console/v1/overview_pb";
import { counted } from "../../pictures/amount";
import { StateMark } from "../../pictures/StateMark";
import { safetyWord } from "../../words/safety";
import { RouteLink } from "../../links/RouteLink";
import { BadNodes } from "./BadNodes";
import styles from "./Overview.module.css";

/** SafetyLine is the answer to whether data is safe, and where to go when it is not. */
export function SafetyLine({ overview }: { overview: Overview }) {
  const harmed = overview.safety === Safety.REDUCED || overview.safety === Safety.UNPROTECTED;
  return (
    <div className={styles.verdict} data-safety={safetyWord(overview.safety).toLowerCase()}>
      <Flex gap="sm" direction={{ base: "column", sm: "row" }} align={{ base: "flex-start", sm: "center" }}>
        <StateMark state={safetyWord(overview.safety)} />
        <h1>{overview.safetyLine}</h1>
      </Flex>
      <Text size="sm" c="dimmed" mt={4}>
        {counted(overview.objects, "object")} in {counted(overview.groups, "group")}
        {overview.groupsNotWhole > 0n && `, of which ${counted(overview.groupsNotWhole, "group")} not whole`}
        {overview.safetyAt !== undefined && `; every one was looked at ${timestampDate(overview.safetyAt).toLocaleTimeString()}`}
        .{" "}
        {overview.unknownSince !== undefined && `None of this is known to hold since ${timestampDate(overview.unknownSince).toLocaleTimeString()}. `}
        {harmed && (
          <RouteLink to="/nodes">
            See nodes and repair
          </RouteLink>
        )}
      </Text>
      {overview.nodes !== undefined && <BadNodes nodes={overview.nodes} />}
    </div>
  );
}

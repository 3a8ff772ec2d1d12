import { Group } from "@mantine/core";

import { SchemeShape } from "../../pictures/SchemeShape";

/** SchemeStep is from which scheme to which. */
export function SchemeStep({ from, to }: { from: string; to: string }) {
  return (
    <Group gap={6} wrap="nowrap" display="inline-flex">
      <SchemeShape scheme={from} />
      <span role="img" aria-label="to">
        →
      </span>
      <SchemeShape scheme={to} />
    </Group>
  );
}

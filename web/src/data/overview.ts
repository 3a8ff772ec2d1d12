import type { Overview } from "../gen/console/v1/overview_pb";

import { useWatch, type Following } from "./console";

export function useOverview(): Following<Overview> {
  return useWatch("overview", (client, signal) => client.watchOverview({}, { signal }), (_before: Overview | undefined, message) => message);
}

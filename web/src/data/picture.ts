import type { Picture } from "../gen/console/v1/plans_pb";

import { useQuestion } from "./asking";
import type { Following } from "./console";

/** usePicture is one group, and what a plan from one code to another does to it. */
export function usePicture(question: { ladder: string; from: string; to: string }): Following<Picture> {
  const { ladder, from, to } = question;
  return useQuestion({
    key: ["picture", ladder, from, to],
    enabled: from !== "" && to !== "",
    ask: (client, signal) => client.getPicture({ ladder, from, to }, { signal }),
  });
}

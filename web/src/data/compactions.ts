import type { CompactionChange, CompactionReport } from "../gen/console/v1/compaction_pb";

import { useAction, useQuestion, type Action } from "./asking";
import type { Following } from "./console";

export function useCompactions(): Following<CompactionReport> {
  return useQuestion({ key: ["compactions"], refetchMilliseconds: 10_000, ask: (client, signal) => client.getCompactions({}, { signal }) });
}

/** CompactionSteering is what can be done to the compaction of a backend. */
export interface CompactionSteering {
  start: Action<{ backend: string }, CompactionChange>;
  pause: Action<{ backend: string }, CompactionChange>;
  resume: Action<{ backend: string }, CompactionChange>;
}

export function useCompactionSteering(): CompactionSteering {
  return {
    start: useAction((client, request) => client.startCompaction(request)),
    pause: useAction((client, request) => client.pauseCompaction(request)),
    resume: useAction((client, request) => client.resumeCompaction(request)),
  };
}

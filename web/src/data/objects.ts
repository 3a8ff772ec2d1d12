import type { MoveObjectResponse, ObjectLayout, SearchObjectsResponse } from "../gen/console/v1/objects_pb";

import { useAction, useQuestion, type Action } from "./asking";
import type { Following } from "./console";

export function useObjects(question: { backend: string; prefix: string; after: Uint8Array; limit: number }, enabled: boolean): Following<SearchObjectsResponse> {
  const { backend, prefix, after, limit } = question;
  return useQuestion({
    key: ["objects", backend, prefix, Array.from(after).join(), limit],
    enabled,
    keepPrevious: true,
    ask: (client, signal) => client.searchObjects({ backend, prefix, afterKey: after, limit }, { signal }),
  });
}

export function useObjectLayout(question: { backend: string; key: Uint8Array } | undefined): Following<ObjectLayout> {
  return useQuestion({
    key: ["layout", question?.backend, question === undefined ? "" : Array.from(question.key).join()],
    enabled: question !== undefined,
    refetchMilliseconds: 5_000,
    ask: (client, signal) => client.getObjectLayout(question ?? {}, { signal }),
  });
}

export function useMoveObject(): Action<{ backend: string; key: Uint8Array; to: string }, MoveObjectResponse> {
  return useAction((client, request) => client.moveObject(request));
}

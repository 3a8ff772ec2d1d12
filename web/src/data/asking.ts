import { useMutation, useQuery, useQueryClient, type UseQueryResult } from "@tanstack/react-query";

import { useReach, type ConsoleClient, type Following } from "./console";
import { problemOf, type Problem } from "./problem";

interface Question<Answer> {
  key: readonly unknown[];
  ask: (client: ConsoleClient, signal: AbortSignal) => Promise<Answer>;
  enabled?: boolean;
  refetchMilliseconds?: number;
  /** What is shown until the answer to a changed question is there. */
  keepPrevious?: boolean;
}

/** useQuestion asks the console once, and again when the question changes. */
export function useQuestion<Answer>(question: Question<Answer>): Following<Answer> {
  const { client } = useReach();
  const result = useQuery({
    queryKey: question.key,
    queryFn: ({ signal }) => question.ask(client, signal),
    enabled: question.enabled ?? true,
    refetchInterval: question.refetchMilliseconds ?? false,
    placeholderData: question.keepPrevious ? (before: Answer | undefined) => before : undefined,
  } as Parameters<typeof useQuery<Answer>>[0]);
  return followingOf(result);
}

function followingOf<Answer>(result: UseQueryResult<Answer>): Following<Answer> {
  return {
    state: result.data,
    phase: result.isError ? "broken" : result.data === undefined ? "connecting" : "live",
    problem: result.isError ? problemOf(result.error) : undefined,
    heard: result.dataUpdatedAt === 0 ? undefined : new Date(result.dataUpdatedAt),
    again: () => void result.refetch(),
  };
}

/** Action is something a person does to what the console looks after. */
export interface Action<Request, Answer> {
  run: (request: Request, then?: (answer: Answer) => void) => void;
  running: boolean;
  answer: Answer | undefined;
  problem: Problem | undefined;
  reset: () => void;
}

/** useAction does something, and has asked anew afterwards whatever is on show. */
export function useAction<Request, Answer>(act: (client: ConsoleClient, request: Request) => Promise<Answer>): Action<Request, Answer> {
  const { client } = useReach();
  const queries = useQueryClient();
  const mutation = useMutation({
    mutationFn: (request: Request) => act(client, request),
    onSettled: () => queries.invalidateQueries(),
  });
  return {
    run: (request, then) => mutation.mutate(request, then === undefined ? undefined : { onSuccess: then }),
    running: mutation.isPending,
    answer: mutation.data,
    problem: mutation.isError ? problemOf(mutation.error) : undefined,
    reset: mutation.reset,
  };
}

import { Alert } from "@mantine/core";

import type { Action } from "../data/asking";

/** Outcome is what came of the actions of a place: what the console said, or why it refused. */
export function Outcome({ actions }: { actions: Pick<Action<never, { said: string }>, "answer" | "problem" | "reset">[] }) {
  const problem = actions.find((action) => action.problem !== undefined);
  const answer = actions.find((action) => action.answer !== undefined);
  return (
    <div aria-live="polite">
      {problem?.problem !== undefined && (
        <Alert color="red" role="alert" title={problem.problem.kind === "denied" ? `You lack the verb ${problem.problem.verb}` : "That was not done"} withCloseButton closeButtonLabel="Close" onClose={problem.reset}>
          {problem.problem.text}
        </Alert>
      )}
      {answer?.answer !== undefined && problem === undefined && (
        <Alert color="green" withCloseButton closeButtonLabel="Close" onClose={answer.reset}>
          {answer.answer.said}
        </Alert>
      )}
    </div>
  );
}

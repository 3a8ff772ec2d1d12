import { Text } from "@mantine/core";

import type { Transition } from "../../gen/console/v1/transitions_pb";
import { ProgressBar } from "../../pictures/ProgressBar";
import { sentence } from "../../words/sentence";

/** TransitionProgress is how far a transition is, or why it has not begun. */
export function TransitionProgress({ transition }: { transition: Transition }) {
  const { progress, state, stateWhy, name } = transition;
  if (progress === undefined) {
    return <Text size="sm">{stateWhy === "" ? state : sentence(stateWhy)}</Text>;
  }
  return (
    <ProgressBar
      label={`Progress of ${name}`}
      done={progress.bytesDone}
      total={progress.bytesTotal}
      bytesPerSecond={state === "Running" ? progress.bytesPerSecond : undefined}
      secondsLeft={progress.etaSeconds}
      secondsLeftLow={progress.etaSecondsLow}
      secondsLeftHigh={progress.etaSecondsHigh}
      paused={stopped(transition)}
      counting={state === "Running"}
    />
  );
}

// What was stopped has no time left to tell; why it does not is said in its place.
function stopped({ state, stateWhy }: Transition): string | undefined {
  if (state === "Running" || state === "Done") return undefined;
  return state === "Paused" ? sentence(stateWhy) : `${state.toLowerCase()}${stateWhy === "" ? "" : `, ${stateWhy}`}`;
}

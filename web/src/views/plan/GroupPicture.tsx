import { Text } from "@mantine/core";
import { useMemo } from "react";

import { usePicture } from "../../data/picture";
import type { Picture } from "../../gen/console/v1/plans_pb";
import { StripePicture } from "../../pictures/StripePicture";
import { stripePlanFromApi } from "../../pictures/stripe-picture-from-api";
import { Shown } from "../../states/States";

/** GroupPicture is what a plan does to one group, step by step. */
export function GroupPicture({ ladder, from, to }: { ladder: string; from: string; to: string }) {
  const picture = usePicture({ ladder, from, to });
  return (
    <section aria-labelledby="group-picture">
      <h2 id="group-picture">One group, step by step</h2>
      <Shown what="the stripe picture" following={picture} height={320}>
        {(state) => <Steps picture={state} />}
      </Shown>
    </section>
  );
}

function Steps({ picture }: { picture: Picture }) {
  const plan = useMemo(() => stripePlanFromApi(picture), [picture]);
  return (
    <>
      <StripePicture plan={plan} />
      <Text size="sm" c="dimmed" mt="xs">
        {picture.proved ? "The plan is proved: every parity after it is what the new scheme says." : "This plan is not proved."}
      </Text>
    </>
  );
}

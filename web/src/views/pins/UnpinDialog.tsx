import { Button, Group, Modal, Stack, Text } from "@mantine/core";

import type { Action } from "../../data/asking";
import type { Policy, UnpinPolicyResponse } from "../../gen/console/v1/policies_pb";
import { PinConsequence } from "./PinConsequence";

interface UnpinDialogProps {
  policy: Policy;
  unpin: Action<{ name: string }, UnpinPolicyResponse>;
  onClose: () => void;
}

/** UnpinDialog takes the pin of a policy out, and shows before what temperature then moves. */
export function UnpinDialog({ policy, unpin, onClose }: UnpinDialogProps) {
  return (
    <Modal opened onClose={onClose} title={`Unpin ${policy.name}`} size="lg" centered closeButtonProps={{ "aria-label": "Close" }}>
      <Stack gap="sm">
        <Text size="sm">Without the pin the temperature of class {policy.class} decides again where it belongs.</Text>
        <PinConsequence policy={policy} scheme="" until={undefined} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} data-autofocus>
            Leave it
          </Button>
          <Button
            onClick={() => {
              unpin.run({ name: policy.name });
              onClose();
            }}
          >
            Unpin
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

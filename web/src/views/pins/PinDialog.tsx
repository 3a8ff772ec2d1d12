import { Button, Group, Modal, NativeSelect, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import type { Action } from "../../data/asking";
import type { PinPolicyResponse, Policy } from "../../gen/console/v1/policies_pb";
import { lastings, pinEnd, type Lasting } from "../../words/pin";
import { PinConsequence } from "./PinConsequence";

interface PinDialogProps {
  policy: Policy;
  pin: Action<{ name: string; scheme: string; until: Date; reason: string }, PinPolicyResponse>;
  /** When the dialog was opened: what lasts a day lasts a day from then. */
  opened: Date;
  onClose: () => void;
}

/** PinDialog pins a policy to a scheme of its ladder until a time, and shows before what that moves. */
export function PinDialog({ policy, pin, opened, onClose }: PinDialogProps) {
  const [scheme, setScheme] = useState(policy.ladder.find((one) => one === policy.pin?.scheme) ?? policy.ladder[0] ?? "");
  const [lasting, setLasting] = useState<Lasting>("week");
  const [other, setOther] = useState("");
  const [reason, setReason] = useState("");
  const until = pinEnd(lasting, opened, other);
  return (
    <Modal opened onClose={onClose} title={`Pin ${policy.name}`} size="lg" centered closeButtonProps={{ "aria-label": "Close" }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (until === undefined || scheme === "") return;
          pin.run({ name: policy.name, scheme, until, reason });
          onClose();
        }}
      >
        <Stack gap="sm">
          <Text size="sm">
            Until the pin ends, class {policy.class} stays on one scheme whatever its temperature, and new objects are written with it. What lies elsewhere is moved to it within the budget, the windows
            and the approval of the policy.
          </Text>
          <NativeSelect label="Scheme" value={scheme} data={policy.ladder} onChange={(event) => setScheme(event.currentTarget.value)} data-autofocus />
          <div>
            <Text size="sm" id="pin-lasting">
              Until
            </Text>
            <SegmentedControl aria-labelledby="pin-lasting" value={lasting} data={[...lastings]} onChange={(value) => setLasting(value)} />
          </div>
          {lasting === "other" && <TextInput type="datetime-local" label="Ends at" description="At most a year ahead" value={other} onChange={(event) => setOther(event.currentTarget.value)} />}
          {until !== undefined && <Text size="sm">Ends {until.toLocaleString()}.</Text>}
          <TextInput label="Why" description="Everybody sees it beside the pin" maxLength={256} value={reason} onChange={(event) => setReason(event.currentTarget.value)} />
          <PinConsequence policy={policy} scheme={scheme} until={until} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Leave it
            </Button>
            <Button type="submit" disabled={until === undefined || scheme === ""}>
              Pin
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

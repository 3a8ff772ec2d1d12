import { Button, Checkbox, Group, Modal, NativeSelect, Radio, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import type { NewNode, NodeAdding } from "../../data/balances";
import { sentence } from "../../words/sentence";
import { PlanShown } from "./PlanShown";

interface AddNodeProps {
  /** The names of the backends there are, at least one. */
  backends: string[];
  adding: NodeAdding;
  onClose: () => void;
}

/** AddNode makes a node a member, after the gateways have said whether it can be one and what that moves. */
export function AddNode({ backends, adding, onClose }: AddNodeProps) {
  const { look, add } = adding;
  const [backend, setBackend] = useState(backends[0] ?? "");
  const [name, setName] = useState("");
  const [address, setAddress] = useState("");
  const [failureDomain, setFailureDomain] = useState("");
  const [spare, setSpare] = useState(false);
  const [balance, setBalance] = useState(false);
  const [looked, setLooked] = useState<string>();
  const wanted: NewNode = { node: { backend, name }, address, failureDomain, spare, balance: balance && !spare };
  // What was found is of what was asked; another address is looked at anew.
  const asked = JSON.stringify(wanted);
  const found = looked === asked && !look.running ? look.answer : undefined;
  const refused = looked === asked && !look.running ? look.problem : undefined;
  return (
    <Modal opened onClose={onClose} title="Add a node" size="lg" centered closeButtonProps={{ "aria-label": "Close" }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (name === "" || address === "") return;
          if (found === undefined) {
            setLooked(asked);
            look.run(wanted);
            return;
          }
          add.run(wanted);
          onClose();
        }}
      >
        <Stack gap="sm">
          <Text size="sm">The agent of the node must run already, under the name given here and with a store of its own. All gateways learn of the node at once.</Text>
          {backends.length > 1 && <NativeSelect label="Backend" value={backend} data={backends} onChange={(event) => setBackend(event.currentTarget.value)} />}
          <TextInput label="Name" value={name} onChange={(event) => setName(event.currentTarget.value.trim())} autoComplete="off" spellCheck={false} data-autofocus />
          <TextInput label="Address of its agent, host:port" value={address} onChange={(event) => setAddress(event.currentTarget.value.trim())} autoComplete="off" spellCheck={false} />
          <TextInput label="Failure domain" description="Such as a rack; empty: its own" value={failureDomain} onChange={(event) => setFailureDomain(event.currentTarget.value)} />
          <Checkbox label="A spare: it takes no new groups while others can" checked={spare} onChange={(event) => setSpare(event.currentTarget.checked)} />
          <Radio.Group label="What it is used for" value={wanted.balance ? "balance" : "capacity"} onChange={(use) => setBalance(use === "balance")}>
            <Stack gap={4} mt={4}>
              <Radio value="capacity" label="New groups, and blocks that have to leave other nodes" />
              <Radio value="balance" label="Those, and blocks of other nodes are moved to it until every node holds about its share" disabled={spare} />
            </Stack>
          </Radio.Group>
          <div aria-live="polite" aria-busy={look.running || undefined}>
            {look.running && <Text size="sm">Asking the agent who it is…</Text>}
            {refused !== undefined && <Text size="sm">{sentence(refused.text)}</Text>}
            {found !== undefined && found.plan === undefined && (
              <Text size="sm" fw={600}>
                {sentence(found.said)}
              </Text>
            )}
            {found?.plan !== undefined && (
              <>
                <Text size="sm">{name} can be added.</Text>
                <PlanShown plan={found.plan} />
              </>
            )}
          </div>
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Leave it
            </Button>
            <Button type="submit" disabled={name === "" || address === ""} loading={look.running}>
              {found === undefined ? "See what that does" : "Add node"}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

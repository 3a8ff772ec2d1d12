import { Radio, Stack, TextInput } from "@mantine/core";
import { useState } from "react";

import { ConfirmByName } from "../../actions/ConfirmByName";
import type { Node } from "../../gen/console/v1/nodes_pb";

interface ReplaceProps {
  opened: boolean;
  onClose: () => void;
  node: Node;
  onReplace: (how: { address: string; with: string; failureDomain: string }) => void;
}

/** Replace has a node come back elsewhere or empty, or another node take its place. */
export function Replace({ opened, onClose, node, onReplace }: ReplaceProps) {
  const [how, setHow] = useState("itself");
  const [address, setAddress] = useState("");
  const [other, setOther] = useState("");
  const [domain, setDomain] = useState("");
  const itself = how === "itself";
  return (
    <ConfirmByName
      opened={opened}
      onClose={onClose}
      action="Replace node"
      name={node.name}
      ready={itself || (other !== "" && address !== "")}
      consequence={
        itself
          ? `${node.name} comes back ${address === "" ? "where it was" : `at ${address}`}, with its store or an empty one; what is missing there is rebuilt.`
          : `${other === "" ? "The other node" : other} takes the place of ${node.name} and gets what that node holds.`
      }
      onConfirm={() => onReplace({ address, with: itself ? "" : other, failureDomain: itself ? "" : domain })}
    >
      <Radio.Group label="By what" value={how} onChange={setHow}>
        <Stack gap={4} mt={4}>
          <Radio value="itself" label="By itself, elsewhere or with an empty store" />
          <Radio value="other" label="By another node" />
        </Stack>
      </Radio.Group>
      {!itself && <TextInput label="Name of the other node" value={other} onChange={(event) => setOther(event.currentTarget.value)} />}
      <TextInput label="Address of its agent, host:port" description={itself ? `Empty: as it is, ${node.address}` : undefined} value={address} onChange={(event) => setAddress(event.currentTarget.value)} />
      {!itself && <TextInput label="Failure domain" description="Empty: that of the node replaced" value={domain} onChange={(event) => setDomain(event.currentTarget.value)} />}
    </ConfirmByName>
  );
}

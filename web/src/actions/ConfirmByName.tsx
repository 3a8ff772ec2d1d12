import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useState, type ReactNode } from "react";

interface ConfirmByNameProps {
  opened: boolean;
  onClose: () => void;
  /** What happens, as the button says it: "Cancel transition". */
  action: string;
  name: string;
  consequence: ReactNode;
  /** More that has to be said, and whether it was. */
  children?: ReactNode;
  ready?: boolean;
  onConfirm: () => void;
}

/** ConfirmByName names what is in danger and what comes of it, and wants the name typed. */
export function ConfirmByName({ opened, onClose, action, name, consequence, children, ready = true, onConfirm }: ConfirmByNameProps) {
  const [typed, setTyped] = useState("");
  const close = (): void => {
    setTyped("");
    onClose();
  };
  const confirmed = typed === name && ready;
  return (
    <Modal opened={opened} onClose={close} title={`${action}: ${name}`} centered closeButtonProps={{ "aria-label": "Close" }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!confirmed) return;
          onConfirm();
          close();
        }}
      >
        <Stack gap="sm">
          <Text size="sm">{consequence}</Text>
          {children}
          <TextInput label={`Type ${name} to confirm`} value={typed} onChange={(event) => setTyped(event.currentTarget.value)} autoComplete="off" spellCheck={false} data-autofocus />
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Leave it
            </Button>
            <Button type="submit" color="red" disabled={!confirmed}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

import { Button, Group, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";

import { useAbout } from "../../data/about";
import { useObjects } from "../../data/objects";
import type { Object$ as Stored } from "../../gen/console/v1/objects_pb";
import { sized } from "../../pictures/amount";
import { SchemeShape } from "../../pictures/SchemeShape";
import { Empty, Shown } from "../../states/States";
import { Beside } from "../../table/Beside";
import { DataTable, type Column } from "../../table/DataTable";
import { moment, order } from "../../words/time";
import { ObjectDetail } from "./ObjectDetail";
import { keyText, keyBytes } from "./key";

const route = getRouteApi("/objects");

const columns: Column<Stored>[] = [
  { id: "key", header: "Key", width: 250, value: ({ key }) => key },
  { id: "class", header: "Class", width: 110, value: (object) => object.class },
  { id: "scheme", header: "Scheme", width: 155, value: ({ scheme }) => scheme, cell: ({ scheme }) => <SchemeShape scheme={scheme} /> },
  { id: "size", header: "Size", width: 90, numeric: true, value: ({ size }) => size, cell: ({ size }) => sized(size) },
  { id: "modified", header: "Changed", width: 180, value: ({ modified }) => order(modified), cell: ({ modified }) => moment(modified) },
  { id: "revision", header: "Revision", width: 140, hidden: true, value: ({ revision }) => revision },
];

const pageLimit = 200;
const first = new Uint8Array();

/** ObjectsView finds objects by the beginning of their keys, and shows where one of them lies. */
export function ObjectsView() {
  const { backend = "", prefix = "", key } = route.useSearch();
  const navigate = route.useNavigate();
  const backends = useAbout().state?.backends.map(({ name }) => name) ?? [];
  const chosen = backend === "" ? (backends[0] ?? "") : backend;
  return (
    <Stack gap="sm">
      <title>Objects · Restripe</title>
      <h1>Objects</h1>
      <Search key={`${chosen} ${prefix}`} backend={chosen} backends={backends} prefix={prefix} />
      <Beside
        label={`Object ${key ?? ""}`}
        onClose={() => void navigate({ search: (before) => ({ ...before, key: undefined }) })}
        beside={key === undefined || chosen === "" ? undefined : <ObjectDetail key={key} backend={chosen} objectKey={keyBytes(key)} name={key} />}
      >
        <Found key={`${chosen} ${prefix}`} backend={chosen} prefix={prefix} selected={key} />
      </Beside>
    </Stack>
  );
}

function Search({ backend, backends, prefix }: { backend: string; backends: string[]; prefix: string }) {
  const navigate = route.useNavigate();
  const [text, setText] = useState(prefix);
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        void navigate({ search: { backend, prefix: text } });
      }}
    >
      <Group align="end" gap="xs">
        {backends.length > 1 && <NativeSelect size="xs" label="Backend" value={backend} data={backends} onChange={(event) => void navigate({ search: { backend: event.currentTarget.value } })} />}
        <TextInput size="xs" label="Keys that begin with" placeholder="photos/" value={text} onChange={(event) => setText(event.currentTarget.value)} spellCheck={false} />
        <Button type="submit" size="xs" variant="default">
          Search
        </Button>
      </Group>
    </form>
  );
}

function Found({ backend, prefix, selected }: { backend: string; prefix: string; selected: string | undefined }) {
  const navigate = route.useNavigate();
  const [pages, setPages] = useState<Uint8Array[]>([first]);
  const after = pages.at(-1) ?? first;
  const found = useObjects({ backend, prefix, after, limit: pageLimit }, backend !== "");
  return (
    <Shown what="objects" following={found} height={400}>
      {(state) => (
        <Stack gap="xs">
          <DataTable
            name="objects"
            label="objects"
            rows={state.objects}
            columns={columns}
            keyOf={({ keyBytes: bytes }) => keyText(bytes)}
            selected={selected}
            onSelect={(key) => void navigate({ search: (before) => ({ ...before, key }) })}
            empty={
              <Empty title={prefix === "" ? "Nothing is stored" : `No key begins with ${prefix}`} command="restripe put ~/photos photos/">
                {prefix === "" ? "Store a file or a directory:" : "Try a shorter beginning, or store something there:"}
              </Empty>
            }
          />
          <Group gap="xs">
            {pages.length > 1 && (
              <Button size="xs" variant="default" onClick={() => setPages(pages.slice(0, -1))}>
                Page before
              </Button>
            )}
            {state.nextKey.length > 0 && (
              <Button size="xs" variant="default" onClick={() => setPages([...pages, state.nextKey])}>
                Next page
              </Button>
            )}
            <Text size="sm" c="dimmed">
              Page {pages.length}, up to {pageLimit} keys each{state.nextKey.length === 0 ? "; this is the last" : ""}.
            </Text>
          </Group>
        </Stack>
      )}
    </Shown>
  );
}
